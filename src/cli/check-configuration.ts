import { AuthFileError, createAuthentication } from "../auth/create-authentication.ts";
import { type Config, readConfig } from "../config/config.ts";
import { ConfigError } from "../config/config-error.ts";
import type { Environment } from "./secrets.ts";

/**
 * Reads the configuration as `serve` does, and checks the files that it names.
 * @throws ConfigError for all variables that are wrong, or else for the first file
 */
export async function readWholeConfig(env: Environment): Promise<Config> {
  const config = readConfig(env);
  try {
    createAuthentication({
      ...config.auth,
      accounts: new Set(config.accounts.keys()),
      watchTokens: undefined,
    }).close();
  } catch (error) {
    if (error instanceof AuthFileError) throw new ConfigError(error.variable, error.message);
    throw error;
  }
  if (config.trustedDocuments) await checkDocuments(config.trustedDocuments, config);
  return config;
}

/** Loads the GraphQL schema, which is large, only if there are trusted documents to check. */
async function checkDocuments(
  documents: NonNullable<Config["trustedDocuments"]>,
  { graphqlSubgraph, accounts }: Config,
): Promise<void> {
  const [{ schema }, { createSubgraphSchema }, { createDocumentOf, WrongDocumentError }] =
    await Promise.all([
      import("../graphql/schema/schema.ts"),
      import("../graphql/schema/subgraph.ts"),
      import("../graphql/trusted-documents.ts"),
    ]);
  try {
    const served = graphqlSubgraph ? createSubgraphSchema(new Set(accounts.keys())) : schema;
    createDocumentOf(served, documents);
  } catch (error) {
    if (!(error instanceof WrongDocumentError)) throw error;
    throw new ConfigError("PERSISTED_DOCUMENTS_FILE", error.message);
  }
}
