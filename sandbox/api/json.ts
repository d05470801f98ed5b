/** A JSON number as its own text, so that `10.10` stays `10.10`. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Json = string | boolean | null | NumberText | Json[] | { [name: string]: Json };

/** Parses JSON and keeps the text of its numbers. @throws SyntaxError */
export function parseJson(text: string): Json {
  return JSON.parse(text, keepNumberText as (key: string, value: unknown) => unknown) as Json;
}

function keepNumberText(_key: string, value: unknown, context: { source?: string }): unknown {
  return typeof value === "number" ? new NumberText(context.source ?? String(value)) : value;
}
