import type { ToolDefinition } from "../message.ts";
import { toolsFromOpenAi } from "../message.ts";
import { findReasoningParser } from "../../packages/tool-parsers/src/reasoning/registry.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import type { Dialect } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "./bound-template.ts";
import { opensReasoning } from "./continues.ts";
import { literalPattern } from "./guard/literal-pattern.ts";
import type { ProbeCall } from "./capability/probe-messages.ts";
import { assistantMessage, probeTools, userMessage } from "./capability/probe-messages.ts";
import { createProber } from "./capability/prober.ts";

/** The result of parsing a call as the template writes it. */
type OwnCalls =
  | { readonly type: "read" }
  /** `detail` has the reason. */
  | { readonly type: "misread"; readonly detail: string }
  /** The template shows no call, or not as the continuation of a prompt. */
  | { readonly type: "not-shown" };

/** The parsers to try, and their inputs. */
export interface ReadingParsers {
  readonly parser: string;
  readonly reasoningParser: string | undefined;
  readonly dialect?: Dialect;
  readonly engineVersion?: string;
  /** Literals that end a turn. */
  readonly stops: readonly string[];
  /** The model's added tokens, if known. */
  readonly vocabulary?: readonly string[];
  /** The model's own `response_template`, if it has one. */
  readonly responseTemplate?: PyDict;
}

/** Some formats print ids, each in its own form. */
const callIds = ["call00001", "functions.find_parcel:0"];

const tools: readonly ToolDefinition[] = toolsFromOpenAi(probeTools, "tools");

/** Renders a call with the template and parses it, to measure whether template and parsers fit. */
export function readOwnCalls(template: BoundTemplate, parsers: ReadingParsers): OwnCalls {
  let result: OwnCalls = { type: "not-shown" };
  for (const turn of writtenTurns(template)) {
    const read = readTurn(turn, parsers);
    if (read.type === "read") return read;
    if (result.type === "not-shown") result = read;
  }
  return result;
}

interface WrittenTurn {
  /** The text after the prompt, including the end of the turn and everything after it. */
  readonly text: string;
  readonly opened: boolean;
}

/** Turns with one call, if the template shows them as the continuation of a prompt. */
function* writtenTurns(template: BoundTemplate): Iterable<WrittenTurn> {
  const { opening, show } = createProber(template);
  for (const context of [opening, [userMessage("Where is my parcel?")]]) {
    const prompt = show(context, true);
    if (prompt === undefined) continue;
    const opened = opensReasoning(prompt);
    for (const id of callIds) {
      const call: ProbeCall = { id, name: "find_parcel", arguments: { parcel_id: "7" } };
      const reasoning = opened ? { reasoning: "Look." } : {};
      const turn = assistantMessage({ content: "", calls: [call], ...reasoning });
      const text = show([...context, turn], false);
      if (text?.startsWith(prompt) !== true) continue;
      yield { text: text.slice(prompt.length), opened };
    }
  }
}

function readTurn({ text, opened }: WrittenTurn, parsers: ReadingParsers): OwnCalls {
  const { stops, reasoningParser, dialect, engineVersion, vocabulary, responseTemplate } = parsers;
  const own = responseTemplate === undefined ? {} : { responseTemplate };
  const parser = findToolCallParser(parsers.parser);
  const [stop] = text.matchAll(literalPattern(stops));
  const isKept = stop !== undefined && parser.closingStops?.includes(stop[0]) === true;
  const said = text.slice(0, stop && stop.index + (isKept ? stop[0].length : 0));
  if (!said.includes("find_parcel")) return { type: "not-shown" };
  const rest =
    reasoningParser === undefined
      ? said
      : findReasoningParser(reasoningParser).parse(said, {
          forceReasoning: opened,
          toolCallParserActive: true,
          ...(dialect !== undefined && { dialect }),
          ...own,
        }).normalText;
  // Some families always reason, and their templates omit earlier reasoning.
  const { attempts } = parser.parse(rest === "" ? said : rest, {
    tools,
    finishReason: "stop",
    ...(dialect !== undefined && { dialect }),
    ...(engineVersion !== undefined && { engineVersion }),
    ...(vocabulary !== undefined && { vocabulary }),
    ...own,
  });
  const [attempt] = attempts;
  if (attempt === undefined) return { type: "misread", detail: "it finds no call in it" };
  if (attempt.status === "ok") return { type: "read" };
  const [why] = attempt.diagnostics;
  return { type: "misread", detail: why?.detail ?? attempt.status };
}
