import type { Refusal } from "../src/admin/console-api.ts";

/** The gateway answered with another status than 2xx, or not at all (status 0). */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type Client = ReturnType<typeof createClient>;

const timeoutMs = 15_000;
/** Longer than other requests: the sandbox delays some responses by 10 s. */
const actionTimeoutMs = 70_000;

/**
 * Sends requests to the admin listener that served this page, and to no other server.
 * @param token API key or JWT, if the gateway requires one
 */
export function createClient(token: string | undefined) {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function ask<T>(path: string, init: RequestInit): Promise<T> {
    const response = await reach(path, init);
    if (!response.ok) throw await refusalOf(response);
    return (await response.json()) as T;
  }

  /** A GraphQL operation as a request. */
  const operation = (query: string, variables: object, account: string, accept: string) => ({
    method: "POST",
    headers: {
      ...{ ...authorization, accept, "content-type": "application/json" },
      "x-merchant-account": account,
    },
    body: JSON.stringify({ query, variables }),
  });

  return {
    get: <T>(path: string, query: Readonly<Record<string, string>> = {}, signal?: AbortSignal) =>
      ask<T>(`${path}${search(query)}`, { headers: authorization, signal: inTime(signal) }),
    post: <T>(path: string, body: unknown) =>
      ask<T>(path, {
        method: "POST",
        headers: { ...authorization, "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(actionTimeoutMs),
      }),
    /** Returns nothing, since the response to a deletion has no body. */
    async delete(path: string) {
      const response = await reach(path, {
        method: "DELETE",
        headers: authorization,
        signal: AbortSignal.timeout(timeoutMs),
      });
      if (!response.ok) throw await refusalOf(response);
    },
    /** The data of a GraphQL query. */
    async query<T>(query: string, variables: object, account: string, signal: AbortSignal) {
      const asked = operation(query, variables, account, "application/json");
      const { data, errors } = await ask<{ data?: T | null; errors?: { message: string }[] }>(
        "/graphql",
        { ...asked, signal: inTime(signal) },
      );
      if (!data) throw new ApiError(0, errors?.[0]?.message ?? "the answer has no data");
      return data;
    },
    /** Opens a GraphQL subscription as a stream of Server-Sent Events. */
    async stream(query: string, variables: object, account: string, signal: AbortSignal) {
      const asked = operation(query, variables, account, "text/event-stream");
      const response = await reach("/graphql", { ...asked, signal });
      if (!response.ok) throw await refusalOf(response);
      return response;
    },
  };
}

function inTime(signal: AbortSignal | undefined): AbortSignal {
  return AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]);
}

async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(path, {
      ...init,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "the gateway cannot be reached");
  }
}

async function refusalOf(response: Response): Promise<ApiError> {
  const body = (await response.json().catch(() => ({}))) as Partial<Refusal> & {
    errors?: { message: string }[];
    outcome?: string;
  };
  const { error, errors, outcome } = body;
  const message = error ?? errors?.[0]?.message ?? outcome ?? `HTTP ${response.status}`;
  return new ApiError(response.status, message);
}

function search(query: Readonly<Record<string, string>>): string {
  const text = new URLSearchParams(query).toString();
  return text === "" ? "" : `?${text}`;
}

/** The error as text for the operator. */
export function messageOf(error: unknown): string {
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return "the gateway did not answer in time";
  }
  return error instanceof Error ? error.message : "something went wrong";
}
