import type { IncomingMessage, ServerResponse } from "node:http";
import { requestPath } from "../../../http/request-path.ts";
import type { JsonObject } from "../../../values/is-object.ts";

/** One HTTP request and the way to answer it. */
export interface HttpExchange {
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The complete text of the body. */
  readonly body: string;
}

/** Reads a complete request. */
export async function readExchange(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<HttpExchange> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { url = "/" } = request;
  // An invalid path matches no route.
  const path = requestPath(url) ?? url;
  return {
    method: request.method ?? "GET",
    path,
    query: new URLSearchParams(/\?(.*)$/s.exec(url)?.[1]),
    request,
    response,
    body: Buffer.concat(chunks).toString("utf8"),
  };
}

/** Answers with JSON. NaN and infinities become `null`, as they do in the engine's own JSON. */
export function sendJson(
  { response }: HttpExchange,
  value: unknown,
  {
    status = 200,
    headers = {},
  }: { status?: number; headers?: Readonly<Record<string, string>> } = {},
): void {
  sendText({ response }, JSON.stringify(value), {
    status,
    headers: { "content-type": "application/json", ...headers },
  });
}

/** Sends a text unchanged. Does nothing if the client has disconnected. */
export function sendText(
  { response }: Pick<HttpExchange, "response">,
  text: string,
  {
    status = 200,
    headers = {},
  }: { status?: number; headers?: Readonly<Record<string, string>> } = {},
): void {
  if (response.destroyed || response.writableEnded) return;
  const bytes = Buffer.from(text, "utf8");
  response.writeHead(status, { ...headers, "content-length": bytes.length });
  response.end(bytes);
}

/** Parses a body. Returns an empty object for an empty body, as the control routes do. */
export function readBody({ body }: HttpExchange): JsonObject {
  if (body.trim() === "") return {};
  const value: unknown = JSON.parse(body);
  return value !== null && typeof value === "object" ? (value as JsonObject) : {};
}
