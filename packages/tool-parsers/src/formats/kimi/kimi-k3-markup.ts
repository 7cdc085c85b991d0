import { parsePythonJson, type PyDict } from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";

/** The markers of Kimi K3's channels. */
export const kimiK3 = {
  thinkOpen: "<|open|>think<|sep|>",
  thinkClose: "<|close|>think<|sep|>",
  responseOpen: "<|open|>response<|sep|>",
  responseClose: "<|close|>response<|sep|>",
  toolsOpen: "<|open|>tools<|sep|>",
  toolsClose: "<|close|>tools<|sep|>",
  messageClose: "<|close|>message<|sep|>",
} as const;

/** The possible ends of a turn that was cut off inside a marker. */
const partialEnds: readonly string[] = [
  "<|open|>",
  "<|close|>",
  "<|close|>think",
  "<|open|>response",
  "<|close|>response",
  "<|open|>tools",
  "<|close|>tools",
  "<|close|>message",
];

/** Drops an incomplete marker from the end of the text. */
export function dropPartialMarker(text: string): string {
  const end = partialEnds.find((partial) => text.endsWith(partial));
  return end === undefined ? text : text.slice(0, -end.length);
}

/**
 * Drops the markers of the response and message channels. If a response channel opens, only the
 * inside of the first one is kept.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/kimik3_format.py`.
 */
export function unwrapResponse(text: string): string {
  const { responseOpen, responseClose, messageClose } = kimiK3;
  const start = text.indexOf(responseOpen);
  let inner = text.replaceAll(responseClose, "");
  if (start !== -1) {
    const innerStart = start + responseOpen.length;
    const end = text.indexOf(responseClose, innerStart);
    inner = text.slice(innerStart, end === -1 ? text.length : end);
  }
  return dropPartialMarker(inner.replaceAll(messageClose, ""));
}

// The look-behind avoids trying every suffix of a long name.
const attributePattern = /(?<![\p{L}\p{N}_])([\p{L}\p{N}_]+)="([^"]*)"/gu;

/** The attributes of an element, given the text of its opening tag. */
export function readKimiK3Attributes(head: string): Map<string, string> {
  return new Map(
    [...head.matchAll(attributePattern)].map(([, key = "", value = ""]) => [
      key,
      value.replaceAll("&quot;", '"').replaceAll("&amp;", "&"),
    ]),
  );
}

/**
 * The arguments of a call. One of type `string` is text; the others are JSON, or text if they are
 * not.
 *
 * @throws PythonError if the JSON nests too deep.
 */
export function readKimiK3Arguments(
  elements: readonly { readonly attributes: ReadonlyMap<string, string>; readonly body: string }[],
): PyDict {
  return new Map(
    elements.map(({ attributes, body }) => {
      const key = attributes.get("key") ?? "";
      if ((attributes.get("type") ?? "string") === "string") return [key, body] as const;
      const json = catchPython(() => parsePythonJson(body), "JSONDecodeError");
      return [key, json === undefined ? body : json] as const;
    }),
  );
}
