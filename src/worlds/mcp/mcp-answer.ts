import { RolloutError } from "../../errors.ts";
import { safeCutIndex } from "../../secrets/redactor.ts";

/** What a call came to, as it is recorded. JSON-able. */
export interface McpAnswer {
  readonly text: string;
  /** The server says that the call was a mistake. */
  readonly isError: boolean;
}

/** A part of a result, as far as it is read. */
interface ContentPart {
  readonly type: string;
  readonly text?: string;
  readonly uri?: string;
  readonly mimeType?: string;
  readonly resource?: {
    readonly uri?: string;
    readonly text?: string;
    readonly mimeType?: string;
  };
}

/** A tool's result as the protocol has it, as far as it is read. */
export interface McpResult {
  readonly content?: readonly unknown[];
  readonly structuredContent?: unknown;
  /** Its JSON as the server wrote it, where that is known. */
  readonly structuredText?: string | undefined;
  readonly isError?: boolean;
}

/**
 * Writes a result as the text that the model is shown: its text parts, one to a line, or its structured
 * content as JSON where there are none. What is longer than `maxLength` is cut, and says so.
 *
 * @throws RolloutError `environment/bad-result` for images, sound and files.
 */
export function readAnswer(
  { content = [], structuredContent, structuredText, isError = false }: McpResult,
  { tool, maxLength }: { readonly tool: string; readonly maxLength: number },
): McpAnswer {
  const parts = (content as readonly ContentPart[]).map((part) => textOfPart(part, tool));
  const isStructured = parts.length === 0 && structuredContent !== undefined;
  const structured = structuredText ?? JSON.stringify(structuredContent);
  const text = isStructured ? structured : parts.join("\n");
  return { text: cut(text, maxLength), isError };
}

function textOfPart(part: ContentPart, tool: string): string {
  const { type, text, uri, resource } = part;
  if (type === "text" && text !== undefined) return text;
  if (type === "resource" && resource?.text !== undefined) return resource.text;
  if (type === "resource_link" && uri !== undefined) return uri;
  const kind = part.mimeType ?? resource?.mimeType;
  throw new RolloutError(
    "environment/bad-result",
    `Cannot use what MCP tool ${tool} returned: a part of type "${type}"${kind === undefined ? "" : ` (${kind})`}: ` +
      "there is no renderer for images, sound and files yet, expected text (the option names leaves the " +
      "tool out where it answers undefined)",
  );
}

function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const end = safeCutIndex(text, maxLength);
  // Not through the middle of a character.
  const isHalf = /[\ud800-\udbff]/.test(text[end - 1] ?? "");
  const kept = text.slice(0, isHalf ? end - 1 : end);
  return `${kept}\n[${text.length - kept.length} more characters were left out]`;
}
