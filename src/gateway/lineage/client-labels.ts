import { isObject } from "../../values/is-object.ts";
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

/** Maximum length of a label, in characters. Longer labels are cut. */
const maxLabelLength = 200;

/** The names that a client gave a conversation, by header. */
export type ClientLabels = Readonly<Record<string, string>>;

/** Returns the names that a client gives its conversation in a request's headers. */
export function labelsOf(headers: Headers): ClientLabels {
  const kind = codexRequestKind(headers.get(codexMetadata));
  return Object.fromEntries(
    [
      ...labelHeaders.map((name) => [name, headers.get(name)] as const),
      [requestKind, kind] as const,
    ]
      .filter((label): label is readonly [string, string] => label[1] !== null)
      .map(([name, value]) => [name, value.slice(0, maxLabelLength)]),
  );
}

function codexRequestKind(metadata: string | null): string | null {
  const value = metadata === null ? undefined : parseJsonText(metadata);
  const kind = isObject(value) ? value["request_kind"] : undefined;
  return typeof kind === "string" ? kind : null;
}

/** A client's own statement about a request. */
export interface ClientLink {
  /** Equal for the requests of one of the client's conversations. Absent if the client names none. */
  readonly thread?: string;
  /** True if the client says that a sub-agent asks. */
  readonly isSubagent: boolean;
  /** True if the client says that the request asks for a summary. */
  readonly isCompaction: boolean;
  /** Number of summaries that the conversation had accepted before. Absent if the client does not count them. */
  readonly window?: number;
}

/** Labels that name a conversation. Equal values of all of them mean the same conversation. */
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
    ...(window !== undefined && { window: Number(window) }),
  };
}
