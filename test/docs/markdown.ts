import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { marked, type Token, type Tokens } from "marked";

export const root = join(import.meta.dirname, "../..");

export async function tokensOf(page: string): Promise<Token[]> {
  return marked.lexer(await readFile(join(root, page), "utf8"));
}

/** The code blocks of a page, in order. */
export async function codeBlocks(page: string): Promise<Tokens.Code[]> {
  const found: Tokens.Code[] = [];
  marked.walkTokens(await tokensOf(page), (token) => {
    if (token.type === "code") found.push(token as Tokens.Code);
  });
  return found;
}
