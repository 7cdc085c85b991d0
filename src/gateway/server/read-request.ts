import { ClientError } from "../client-error.ts";

/** Larger bodies are refused, in bytes. */
export const maxBodySize = 64 * 1024 * 1024;

/**
 * Reads a request's body, whatever it says of its length.
 *
 * @throws ClientError `too-large` beyond `limit` bytes.
 */
export async function readBody(request: Request, limit = maxBodySize): Promise<Uint8Array> {
  const tooLarge = (): ClientError =>
    new ClientError("too-large", `The body is larger than ${limit} bytes`);
  if (Number(request.headers.get("content-length") ?? 0) > limit) throw tooLarge();
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > limit) throw tooLarge();
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

/** Reads a body that is a JSON object or nothing. */
export async function readJsonBody(request: Request): Promise<Readonly<Record<string, unknown>>> {
  const text = new TextDecoder().decode(await readBody(request, 1024 * 1024));
  if (text.trim() === "") return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ClientError("invalid", "Cannot read the body: expected JSON", { cause: error });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new ClientError("invalid", "Cannot read the body: expected a JSON object");
}
