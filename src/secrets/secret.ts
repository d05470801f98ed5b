import { inspect } from "node:util";

/**
 * A secret that cannot be printed by accident: it shows as `[redacted]` in logs, JSON, templates
 * and errors. `reveal()` marks each place where the value itself is used.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[redacted]";
  }

  toJSON(): string {
    return "[redacted]";
  }

  [inspect.custom](): string {
    return "[redacted]";
  }
}
