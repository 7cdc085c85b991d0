import { isObject } from "../../values/is-object.ts";
import type { RequestedTurn } from "../conversation.ts";
import { parseJsonText } from "../../json/parse-json.ts";

/** Headers in which clients name their conversations. */
const labelHeaders = [
  "x-claude-code-session-id",
  "x-claude-code-agent-id",
  "session-id",
  "thread-id",
  "x-codex-window-id",
  "x-codex-parent-thread-id",
  "x-openai-subagent",
  "x-session-id",
  "x-parent-session-id",
];

/** Codex's header with JSON, and the label for its member `request_kind`. */
const codexMetadata = "x-codex-turn-metadata";
const requestKind = "x-codex-request-kind";

/** The label of Claude Code's requests for an object with a title only. */
const replyForm = "reply-form";

/** Maximum length of a label, in characters. Longer labels are cut. */
const maxLabelLength = 200;

/** A client's statements about a request, by the name of the header. Most of them name the request's conversation. */
export type ClientLabels = Readonly<Record<string, string>>;

/** Returns the statements of a client about a request, in its headers and in the reply's required form. */
export function labelsOf(
  headers: Headers,
  requested: Partial<Pick<RequestedTurn, "textFormat" | "tools">> = {},
): ClientLabels {
  const labels: readonly (readonly [string, string | null])[] = [
    ...labelHeaders.map((name) => [name, headers.get(name)] as const),
    [requestKind, codexRequestKind(headers.get(codexMetadata))],
    [replyForm, asksForTitle(headers, requested) ? "title" : null],
  ];
  return Object.fromEntries(
    labels.flatMap(([name, value]) =>
      value === null ? [] : [[name, value.slice(0, maxLabelLength)]],
    ),
  );
}

/** True for Claude Code's request for a title. Other agents may request such an object as a part of their work. */
function asksForTitle(
  headers: Headers,
  { textFormat: form, tools = [] }: Partial<Pick<RequestedTurn, "textFormat" | "tools">>,
): boolean {
  if (!headers.has("x-claude-code-session-id") || tools.length > 0) return false;
  const properties = form?.type === "json-schema" ? form.schema["properties"] : undefined;
  return isObject(properties) && Object.keys(properties).join() === "title";
}

function codexRequestKind(metadata: string | null): string | null {
  const value = metadata === null ? undefined : parseJsonText(metadata);
  const kind = isObject(value) ? value["request_kind"] : undefined;
  return typeof kind === "string" ? kind : null;
}

/** A client's own statement about a request. */
export interface ClientLink {
  /** A key that the requests of one conversation of the client share. Absent if the client names no conversation. */
  readonly thread?: string;
  /** True if the client says that a sub-agent sent the request. */
  readonly isSubagent: boolean;
  /** True if the client says that it requests a summary. */
  readonly isCompaction: boolean;
  /** True if the client says that it requests only a title. */
  readonly isTitle: boolean;
  /**
   * Number of summaries of the conversation that the client had accepted before this request. Absent if the client does
   * not count them.
   */
  readonly window?: number;
}

/** Labels that name a conversation. Two requests with equal values of all these labels are of one conversation. */
const threadLabels = [
  "x-claude-code-session-id",
  "x-claude-code-agent-id",
  "thread-id",
  "x-session-id",
];

/** Labels that only sub-agents have. */
const subagentLabels = [
  "x-claude-code-agent-id",
  "x-codex-parent-thread-id",
  "x-parent-session-id",
];

/** Reads what a client states about a request in its labels. */
export function linkOf(labels: ClientLabels): ClientLink {
  const names = threadLabels.flatMap((name) => (name in labels ? [`${name} ${labels[name]}`] : []));
  const [, window] = /:(\d+)$/.exec(labels["x-codex-window-id"] ?? "") ?? [];
  return {
    ...(names.length > 0 && { thread: names.join("\n") }),
    isSubagent: subagentLabels.some((name) => name in labels),
    isCompaction: labels[requestKind] === "compaction",
    isTitle: labels[replyForm] === "title",
    ...(window !== undefined && { window: Number(window) }),
  };
}

/** Returns a name for the part of a client's conversation between two accepted summaries. */
export function windowName({ thread, window }: Pick<ClientLink, "thread" | "window">): string {
  return `${thread ?? ""}\n${window ?? ""}`;
}
