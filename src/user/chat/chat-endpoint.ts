import { createHttpTransport } from "../../engine/http/http-transport.ts";
import { UsageError } from "../../errors.ts";
import { secretsOfNamed, shownUrl } from "../../secrets/find-secrets.ts";
import { readVariable } from "../../secrets/read-variable.ts";
import { hideEverywhere, Redactor } from "../../secrets/redactor.ts";
import type { ChatRequest } from "./chat-model.ts";
import { callEndpoint } from "./endpoint-call.ts";
import type { LanguageModelAnswer } from "./language-model-call.ts";

/** The address of a chat model on an OpenAI-compatible server. */
export interface ChatEndpoint {
  /** Base URL including the version, such as `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** The server's name for the model. */
  readonly model: string;
  /** The environment variable with the key. Absent if the server needs none. */
  readonly apiKeyEnv?: string;
  /** Further headers, as values or as environment variables that contain them. */
  readonly headers?: Readonly<Record<string, string | { readonly env: string }>>;
}

/** Maximum size of a reply in bytes. */
const maxReplyBytes = 16 * 1024 * 1024;

/** A source of chat completions. */
export interface ChatSource {
  /** The model's name in messages. */
  readonly name: string;
  /**
   * Makes one call.
   *
   * @throws an error that `classifyChatError()` can classify.
   */
  call(request: ChatRequest, options: { signal: AbortSignal }): Promise<LanguageModelAnswer>;
  /** Closes all connections. Calls in progress fail. */
  close(): Promise<void>;
}

/**
 * Milliseconds before an idle connection is closed. Model servers keep theirs longer, and a new TLS
 * connection is slow. A call on a closed connection is retried.
 */
const keepAliveMs = 30_000;

/**
 * Creates a source for an endpoint without a request. Keys are read once, from the environment
 * only.
 *
 * @throws UsageError for an invalid URL, and for an environment variable that is not set.
 */
export function chatEndpointSource(
  endpoint: ChatEndpoint,
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Maximum number of open connections. */
    readonly maxConcurrent: number;
  },
): ChatSource {
  const url = readBaseUrl(endpoint.baseUrl);
  const headers = readHeaders(endpoint, { url, env: options.env });
  hideEverywhere(secretsOfNamed(headers));
  const transport = createHttpTransport({
    url: endpoint.baseUrl,
    connectMs: 10_000,
    maxConnections: options.maxConcurrent,
    maxReplyBytes,
    keepAliveMs,
    redactor: new Redactor(Object.values(headers).map(secretOfHeader)),
  });
  const connection = { transport, headers, model: endpoint.model };
  return {
    name: endpoint.model,
    call: (request, { signal }) => callEndpoint(connection, request, { signal }),
    close: () => transport.close(),
  };
}

/** Returns the secret of a header: its value, or the part after a scheme such as `Bearer`. */
function secretOfHeader(value: string): string {
  return /^\w+ (.+)$/.exec(value)?.[1] ?? value;
}

function readBaseUrl(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(
      `Cannot reach a chat model: \`baseUrl\` is ${JSON.stringify(shownUrl(baseUrl))}, ` +
        "expected a URL such as http://127.0.0.1:8000/v1",
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageError(
      "Cannot reach a chat model: `baseUrl` contains a password, expected `apiKeyEnv` to name an " +
        "environment variable with the key",
    );
  }
  if (url.search !== "") {
    throw new UsageError(
      `Cannot reach a chat model: \`baseUrl\` contains a query, expected ${url.origin}${url.pathname} ` +
        "and, for a key, `apiKeyEnv` to name an environment variable with it",
    );
  }
  return url;
}

function readHeaders(
  { apiKeyEnv, headers = {} }: ChatEndpoint,
  { url, env }: { url: URL; env: Readonly<Record<string, string | undefined>> },
): Record<string, string> {
  const read: Record<string, string> = {};
  const key = readVariable(env, apiKeyEnv, `apiKeyEnv of the chat model at ${url.host}`);
  if (key !== undefined) read["Authorization"] = `Bearer ${key}`;
  for (const [name, value] of Object.entries(headers)) {
    const what = `header ${name} of the chat model at ${url.host}`;
    read[name] = typeof value === "string" ? value : readVariable(env, value.env, what);
  }
  return read;
}
