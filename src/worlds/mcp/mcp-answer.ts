import { RolloutError } from "../../errors.ts";
import { safeCutIndex } from "../../secrets/redactor.ts";
import { isSaid } from "./is-said.ts";

/** The result of a call, in its recorded form. JSON-able. */
export interface McpAnswer {
  readonly text: string;
  /** True if the server reports that the call was a mistake. */
  readonly isError: boolean;
}

/** A part of a result with the members that are read. */
interface ContentPart {
  readonly type: string;
  readonly text?: string;
  readonly uri?: string;
  readonly name?: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly resource?: {
    readonly uri?: string;
    readonly text?: string;
    readonly mimeType?: string;
  };
}

/** A tool's result in the protocol. Contains only the members that are read. */
export interface McpResult {
  readonly content?: readonly unknown[];
  readonly structuredContent?: unknown;
  /** The server's exact JSON, if it is known. */
  readonly structuredText?: string | undefined;
  readonly isError?: boolean;
}

/**
 * Returns a result as the text for the model: its text parts, one per line, and its structured content as JSON if the
 * parts lack one of its values. Cuts a text longer than `maxLength`, and marks the cut.
 * @throws RolloutError `environment/bad-result` for images, sound and files.
 */
export function readAnswer(
  { content = [], structuredContent, structuredText, isError = false }: McpResult,
  { tool, maxLength }: { readonly tool: string; readonly maxLength: number },
): McpAnswer {
  const parts = (content as readonly ContentPart[]).map((part) => textOfPart(part, tool));
  const said = parts.join("\n");
  const text =
    structuredContent === undefined
      ? said
      : withStructured(said, parts, structuredText ?? JSON.stringify(structuredContent));
  return { text: cut(text, maxLength), isError };
}

function withStructured(said: string, parts: readonly string[], structured: string): string {
  if (said === "") return parts.length === 0 || !isSaid(structured, []) ? structured : said;
  return isSaid(structured, parts) ? said : `${said}\n${structured}`;
}

function textOfPart(part: ContentPart, tool: string): string {
  const { type, text, resource } = part;
  if (type === "text" && text !== undefined) return text;
  if (type === "resource" && resource?.text !== undefined) return resource.text;
  if (type === "resource_link" && part.uri !== undefined) return textOfLink(part.uri, part);
  const kind = part.mimeType ?? resource?.mimeType;
  throw new RolloutError(
    "environment/bad-result",
    `Cannot use what MCP tool ${tool} returned: a part of type "${type}"${kind === undefined ? "" : ` (${kind})`}: ` +
      "there is no renderer for images, sound and files yet, expected text (the option names leaves the " +
      "tool out where it answers undefined)",
  );
}

/** Returns a link's address with its name, unless the address ends with it, and its description. */
function textOfLink(uri: string, { name, title, description }: ContentPart): string {
  const label = title ?? name ?? "";
  const named = uri.endsWith(label) ? uri : `${uri} (${label})`;
  return (description ?? "") === "" ? named : `${named}: ${description}`;
}

function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const kept = text.slice(0, safeCutIndex(text, maxLength));
  return `${kept}\n[${text.length - kept.length} more characters were left out]`;
}
