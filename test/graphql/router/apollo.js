/** Apollo's own composition, the reference. */
import { composeServices } from "@apollo/composition";
import { parse } from "graphql";

/** Composes subgraphs, of which each has its schema as text. */
export const compose = (subgraphs) =>
  composeServices(subgraphs.map(({ sdl, ...of }) => ({ ...of, typeDefs: parse(sdl) })));
