import { createAuthentication } from "../auth/create-authentication.ts";
import type { Config } from "../config/config.ts";
import { ConfigError } from "../errors.ts";
import { openTlsFiles } from "../net/tls-files.ts";
import { noReport } from "../report.ts";

/**
 * Reads the files that the configuration names, as a gateway does.
 * @throws ConfigError for all that cannot be used
 */
export async function checkFiles(config: Config): Promise<void> {
  const accounts = new Set(config.accounts.keys());
  const { auth, tls, trustedDocuments } = config;
  const mistakes: string[] = [];
  for (const open of [
    () => createAuthentication(auth, accounts).close(),
    () => tls && openTlsFiles(tls, { report: noReport }).close(),
    () => trustedDocuments && checkDocuments(trustedDocuments, config),
  ]) {
    try {
      await open();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      mistakes.push(...error.mistakes);
    }
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes);
}

/** Loads the GraphQL schema, which is large, only if there are trusted documents to check. */
async function checkDocuments(
  documents: NonNullable<Config["trustedDocuments"]>,
  { graphqlSubgraph, accounts }: Config,
): Promise<void> {
  const [{ schema }, { createSubgraphSchema }, { createDocumentOf }] = await Promise.all([
    import("../graphql/schema/schema.ts"),
    import("../graphql/schema/subgraph.ts"),
    import("../graphql/trusted-documents.ts"),
  ]);
  const served = graphqlSubgraph ? createSubgraphSchema(new Set(accounts.keys())) : schema;
  createDocumentOf(served, documents);
}
