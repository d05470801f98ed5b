/** One result of a GraphQL stream. */
export interface Delivery<Data> {
  readonly data?: Data | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly extensions?: { readonly code?: string; readonly resumeCursor?: string };
  }[];
}

/** After this silence the connection is dead: the gateway sends something at least every 15 s. */
const silenceMs = 40_000;

/**
 * Reads a GraphQL subscription by Server-Sent Events (graphql-sse's distinct connections mode) from
 * a `fetch` response: unlike EventSource, `fetch` can send credentials. Ends when the stream is
 * complete; throws when it breaks or falls silent.
 */
export async function* deliveries<Data>(
  response: Response,
  connection: AbortController,
): AsyncGenerator<Delivery<Data>> {
  const reader = (response.body ?? new ReadableStream()).getReader();
  const decoder = new TextDecoder();
  let text = "";
  let silence = 0;
  try {
    for (;;) {
      clearTimeout(silence);
      silence = setTimeout(() => connection.abort(new Error("the stream fell silent")), silenceMs);
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split(/\r?\n\r?\n/);
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const { event, data } = parse(block);
        if (event === "complete") return;
        if (event === "next" && data !== "") yield JSON.parse(data) as Delivery<Data>;
      }
    }
  } finally {
    clearTimeout(silence);
    connection.abort();
  }
}

function parse(block: string): { event: string; data: string } {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, name, value = ""] = /^(event|data): ?(.*)$/.exec(line) ?? [];
    if (name === "event") event = value;
    if (name === "data") data.push(value);
  }
  return { event, data: data.join("\n") };
}
