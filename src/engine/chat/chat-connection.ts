import { UsageError } from "../../errors.ts";
import { secretsOfNamed, shownUrl } from "../../secrets/find-secrets.ts";
import { readVariable } from "../../secrets/read-variable.ts";
import { hideEverywhere, Redactor } from "../../secrets/redactor.ts";
import { createHttpTransport, type HttpTransport } from "../http/http-transport.ts";

/** The address of an OpenAI-compatible server, and its keys. */
export interface ChatAddress {
  /** Base URL including the version, such as `https://api.openai.com/v1`. */
  readonly baseUrl: string;
  /** The environment variable with the key. Absent if the server needs none. */
  readonly apiKeyEnv?: string;
  /** Further headers, as values or as environment variables that contain them. */
  readonly headers?: Readonly<Record<string, string | { readonly env: string }>>;
}

/** The connection to an OpenAI-compatible server. */
export interface ChatConnection {
  /** A transport to the server's base URL. */
  readonly transport: HttpTransport;
  readonly headers: Readonly<Record<string, string>>;
}

/** Maximum size of a reply in bytes. */
const maxReplyBytes = 16 * 1024 * 1024;

/**
 * Milliseconds before an idle connection is closed. Model servers keep connections open for longer, and a new TLS
 * connection is slow. A call on a closed connection is retried.
 */
const keepAliveMs = 30_000;

/**
 * Creates a connection without a request. Keys are read once, from the environment only.
 *
 * @throws UsageError for an invalid URL, and for an environment variable that is not set.
 */
export function createChatConnection(
  address: ChatAddress,
  options: {
    readonly env: Readonly<Record<string, string | undefined>>;
    /** Maximum number of open connections. */
    readonly maxConnections: number;
  },
): ChatConnection {
  const url = readBaseUrl(address.baseUrl);
  const headers = readHeaders(address, { url, env: options.env });
  hideEverywhere(secretsOfNamed(headers));
  const transport = createHttpTransport({
    url: address.baseUrl,
    connectMs: 10_000,
    maxConnections: options.maxConnections,
    maxReplyBytes,
    keepAliveMs,
    redactor: new Redactor(Object.values(headers).map(secretOfHeader)),
  });
  return { transport, headers };
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
  { apiKeyEnv, headers = {} }: ChatAddress,
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
