import { isObject } from "../../values/is-object.ts";
import { ClientError } from "../../gateway/client-error.ts";
import { readBody } from "../../gateway/server/read-request.ts";
import { ServiceError, type ServiceErrorCode } from "../service-error.ts";
import { describeError } from "../../errors.ts";
import { decodeText } from "../../text/decode-text.ts";
import { parseStrictJson } from "../../json/strict-json.ts";

/** Maximum size of a body, in bytes. */
const maxBodySize = 8 * 1024 * 1024;

/**
 * Reads a body that is a JSON object, or an empty body if that is allowed.
 * @throws ServiceError `too-large`, `bad-encoding` or `bad-request`.
 */
export async function readCall(
  request: Request,
  { mayBeEmpty = false }: { readonly mayBeEmpty?: boolean } = {},
): Promise<object> {
  let text: string;
  try {
    text = decodeText(await readBody(request, { limit: maxBodySize }), { mark: "drop" });
  } catch (cause) {
    if (cause instanceof ClientError) throw toCallError(cause);
    throw new ServiceError("bad-request", "Cannot read the body: expected UTF-8", { cause });
  }
  if (text.trim() === "" && mayBeEmpty) return {};
  const type = request.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json") {
    throw new ServiceError("bad-request", "Cannot read the body: send it as application/json");
  }
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch (cause) {
    throw new ServiceError(
      "bad-request",
      `Cannot read the body: expected JSON (${describeError(cause)})`,
      {
        cause,
      },
    );
  }
  if (isObject(value)) return value;
  throw new ServiceError("bad-request", "Cannot read the body: expected a JSON object");
}

/** Returns the service's refusal of a body that cannot be read. */
export function toCallError(error: ClientError): ServiceError {
  return new ServiceError(codeOf(error), error.message, { cause: error });
}

function codeOf({ kind }: ClientError): ServiceErrorCode {
  return kind === "too-large" || kind === "bad-encoding" ? kind : "bad-request";
}

/**
 * Reads the query parameters of a call.
 *
 * @throws ServiceError `bad-request` for an unknown parameter, or one that is given twice.
 */
export function readParameters(
  url: URL,
  names: readonly string[],
): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [name, value] of url.searchParams) {
    if (!names.includes(name)) {
      const known = names.length === 0 ? "none" : names.join(", ");
      throw new ServiceError(
        "bad-request",
        `There is no parameter ${JSON.stringify(name)}: expected ${known}`,
      );
    }
    if (Object.hasOwn(found, name)) {
      throw new ServiceError("bad-request", `The parameter "${name}" is given twice`);
    }
    found[name] = value;
  }
  return found;
}

/**
 * Reads a cursor from a query parameter.
 * @throws ServiceError `bad-request` for an invalid cursor.
 */
export function readCursor(text: string | undefined): number {
  const cursor = Number(text ?? "0");
  if (/^\d{1,16}$/.test(text ?? "0") && Number.isSafeInteger(cursor)) return cursor;
  throw new ServiceError("bad-request", `"cursor" is wrong: expected an integer of at least 0`);
}
