import { createHttpTransport } from "../../engine/http/http-transport.ts";
import { UsageError } from "../../errors.ts";
import { secretsOfNamed, shownUrl } from "../../secrets/find-secrets.ts";
import { readVariable } from "../../secrets/read-variable.ts";
import { hideEverywhere, Redactor } from "../../secrets/redactor.ts";
import type { ChatRequest } from "./chat-model.ts";
import { callEndpoint } from "./endpoint-call.ts";
import type { LanguageModelAnswer } from "./language-model-call.ts";

/** A chat model behind an OpenAI-compatible server. */
export interface ChatEndpoint {
  /** Up to and including the version, such as `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** The server's name for the model. */
  readonly model: string;
  /** The environment variable that holds the key; absent where the server wants none. */
  readonly apiKeyEnv?: string;
  /** Further headers: their values, or the environment variables that hold them. */
  readonly headers?: Readonly<Record<string, string | { readonly env: string }>>;
}

/** Replies larger than this, in bytes, are refused. */
const maxReplyBytes = 16 * 1024 * 1024;

/** Whom a chat model's calls go to. */
export interface ChatSource {
  /** The model's name in messages. */
  readonly name: string;
  /**
   * Makes one call.
   *
   * @throws what `classifyChatError()` understands.
   */
  call(request: ChatRequest, options: { signal: AbortSignal }): Promise<LanguageModelAnswer>;
  /** Drops all connections; calls under way fail. */
  close(): Promise<void>;
}

/**
 * How long an idle connection is kept, in milliseconds. Servers of models keep theirs longer, and most
 * are behind TLS, where a new one is dear; a call that meets a closed one is made again.
 */
const keepAliveMs = 30_000;

/**
 * Describes how to reach an endpoint; makes no request. Keys are read here, once, and only from the environment.
 *
 * @throws UsageError for a URL that is none, and for an environment variable that is not set.
 */
export function chatEndpointSource(
  endpoint: ChatEndpoint,
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Connections kept open at once. */
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

/** A header's value or, behind a scheme such as `Bearer`, the key. */
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
      "Cannot reach a chat model: `baseUrl` holds a password, expected `apiKeyEnv` to name an " +
        "environment variable with the key",
    );
  }
  if (url.search !== "") {
    throw new UsageError(
      `Cannot reach a chat model: \`baseUrl\` holds a query, expected ${url.origin}${url.pathname} ` +
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
