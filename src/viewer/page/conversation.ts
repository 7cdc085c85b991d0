import { html, nothing, type TemplateResult } from "lit/html.js";
import type { AttemptRecord, TurnRecord, TurnStep } from "../../episode/episode.ts";
import { shownSteps } from "../../episode/turn/shown-steps.ts";
import type { Message } from "../../message.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { callArguments, type CallArgument } from "../model/call-arguments.ts";
import { openingMessages } from "../model/lists/find-hits.ts";
import type { RowBranch } from "../model/row-tree.ts";
import { untrainedTurns, type UntrainedTurn } from "../model/untrained-turn.ts";
import { visibleText } from "../model/visible-text.ts";
import { placeOf, roleAndOrigin } from "./branch-tree.ts";
import { hasHit, longText } from "./long-text.ts";
import { formatDuration } from "./parts.ts";
import { untrainedWords } from "./untrained-list.ts";
import type { ViewerApp } from "./viewer-app.ts";
import { formatCount } from "../../text/format-count.ts";

/** Options for showing a conversation. */
interface ConversationOptions {
  readonly app: ViewerApp;
  readonly selectedTurn: number | undefined;
  /** Called with the chosen turn, and with the chosen part of its ids. */
  readonly onSelect: (turnIndex: number, tokenSpan?: readonly [number, number]) => void;
  /** Returns the text of a turn's tokens, or `undefined` if they are not in the shown row. */
  readonly tokenText?: (turnIndex: number) => string | undefined;
  /** The episode's rows, if it has several. The conversation marks the beginning of each. */
  readonly branches?: readonly RowBranch[];
}

/** Renders the recorded messages, calls and answers. */
export function conversation(row: EpisodeRow, options: ConversationOptions): TemplateResult {
  const untrained = untrainedTurns(row.tree ?? []);
  return html`<ol class="conversation" aria-label="conversation">
    ${openingMessages(row).map((message, index) => openingMessage(message, index, options))}
    ${row.turns.map(
      (turn) =>
        html`${rowStart(turn, options)}${turnEntry(row, turn, options)}${untrainedAfter(turn, untrained)}`,
    )}
  </ol>`;
}

function openingMessage(
  { role, content }: Message,
  index: number,
  { app }: ConversationOptions,
): TemplateResult {
  const body = html`<div class="body">${longText(app, `opening ${index}`, content)}</div>`;
  return html`<li class="said said-${role}">
    ${
      role === "system"
        ? html`<details ?open=${hasHit(app, content)}>
            <summary>
              <span class="who">system</span>
              ${visibleText(content.slice(0, 90))}${content.length > 90 ? "…" : ""}
            </summary>
            ${body}
          </details>`
        : html`<div class="who">${role}</div>
            ${body}`
    }
  </li>`;
}

/** Describes the parent of a turn that begins another row. */
function rowStart({ turnIndex }: TurnRecord, { branches = [] }: ConversationOptions) {
  const branch = branches.find(({ turnIndexes }) => turnIndexes[0] === turnIndex);
  if (branch === undefined || branches.length < 2) return nothing;
  return html`<li class="row-start" data-row-start=${branch.row}>
    row ${branch.row} · ${roleAndOrigin(branch)} ${placeOf(branch)} its prompt is among the tokens
  </li>`;
}

/** Describes the turns that follow a turn in the tree and that no row trains. */
function untrainedAfter({ turnIndex }: TurnRecord, untrained: readonly UntrainedTurn[]) {
  return untrained
    .filter(({ after }) => after === turnIndex)
    .map(
      (turn) =>
        html`<li class="untrained-turn" data-untrained=${turn.node}>
          sampled after turn ${turnIndex}: ${untrainedWords(turn, "")}
        </li>`,
    );
}

function turnEntry(row: EpisodeRow, turn: TurnRecord, options: ConversationOptions) {
  const { turnIndex, sampledTokenCount, engineMs, finish } = turn;
  const { selectedTurn, onSelect, app } = options;
  const isSelected = turnIndex === selectedTurn;
  const isOthers = turnIndex < (row.forkedFrom?.turnIndex ?? 0);
  return html`<li
    class="turn ${isSelected ? "selected" : ""} ${isOthers ? "trained-elsewhere" : ""}"
    data-turn=${turnIndex}
    aria-current=${isSelected ? "true" : nothing}
  >
    <div class="said said-agent">
      <button type="button" class="turn-head" @click=${() => onSelect(turnIndex)}>
        <span class="who">agent</span>
        <span class="facts"
          >turn ${turnIndex} · ${sampledTokenCount} sampled ·
          ${formatDuration(engineMs)}${isOthers ? " · trained in what it is forked from" : ""}${
            finish === "length" ? html` · <b class="warning">cut off by length</b>` : nothing
          }</span
        >
      </button>
      ${turn.reasoning === undefined ? nothing : reasoningOf(app, turn)}
      <div class="body">${turnText(turn, options)}</div>
      ${formFacts(turn)}
    </div>
    ${shownSteps(row, turn).map((step, index) =>
      stepEntry(app, `${row.rolloutId} ${turnIndex} ${index}`, step),
    )}
  </li>`;
}

function reasoningOf(app: ViewerApp, { turnIndex, reasoning }: TurnRecord): TemplateResult {
  return html`<details class="reasoning" ?open=${hasHit(app, reasoning!)}>
    <summary>reasoning, ${formatCount(reasoning!.length)} characters</summary>
    <div class="body">${longText(app, `reasoning ${turnIndex}`, reasoning!)}</div>
  </details>`;
}

/** Renders a turn's text, with each attempted call marked by its result. */
function turnText(turn: TurnRecord, options: ConversationOptions): TemplateResult {
  const { app, onSelect } = options;
  const { text, attempts = [], turnIndex } = turn;
  // A gateway records the text that its client received. A turn with only calls has no text, but
  // its tokens show the calls.
  if (text.trim() === "" && turn.sampledTokenCount > 0) {
    const calls = performedCalls(turn, options);
    if (calls.length === 0) return wordless(turn, options);
    return html`${calls}
      <details class="raw">
        <summary>as it was sampled</summary>
        ${wordless(turn, options)}
      </details>`;
  }
  const parts: TemplateResult[] = [];
  const given = attemptArguments(turn);
  let place = 0;
  for (const [index, attempt] of attempts.entries()) {
    const [start, end] = attempt.span;
    if (start < place) continue;
    const before = text.slice(place, start);
    if (before.trim() !== "") parts.push(longText(app, `turn ${turnIndex} ${place}`, before));
    parts.push(
      html`<div class="attempt attempt-${attempt.status === "ok" ? "ok" : "wrong"}">
        <button
          type="button"
          class="attempt-status"
          title="show its tokens"
          @click=${() => onSelect(turnIndex, attempt.tokenSpan)}
        >
          ${attemptWords(attempt, turn)}
        </button>
        ${attemptBody(app, `attempt ${turnIndex} ${index}`, text.slice(start, end), given[index])}
      </div>`,
    );
    place = end;
  }
  const rest = text.slice(place);
  if (rest.trim() !== "" || parts.length === 0) {
    parts.push(longText(app, `turn ${turnIndex} ${place}`, rest));
  }
  return html`${parts}`;
}

/** Renders the calls of a turn of which only the performed ones are known. */
function performedCalls({ turnIndex, steps }: TurnRecord, { app }: ConversationOptions) {
  return steps.flatMap(({ source, arguments: json }, index) => {
    const given = json === undefined ? undefined : callArguments(json);
    if (given === undefined) return [];
    return html`<div class="attempt attempt-ok">
      <b class="attempt-status">${visibleText(source)}</b>
      ${argumentList(app, `call ${turnIndex} ${index}`, given)}
    </div>`;
  });
}

/** Returns the arguments of each attempt whose call the environment got. `undefined` for the others. */
function attemptArguments({ attempts = [], steps }: TurnRecord) {
  const left = steps.filter((step) => step.arguments !== undefined);
  return attempts.map(({ name }) => {
    const at = left.findIndex(({ source }) => source === name);
    return at < 0 ? undefined : callArguments(left.splice(at, 1)[0]!.arguments!);
  });
}

/** Renders a call's arguments, with the sampled text below them, or only that text. */
function attemptBody(
  app: ViewerApp,
  key: string,
  text: string,
  given: readonly CallArgument[] | undefined,
): TemplateResult {
  if (given === undefined) return longText(app, key, text);
  const isFound = given.some((argument) => hasHit(app, argument.text));
  return html`${argumentList(app, key, given)}
    <details class="raw" ?open=${!isFound && hasHit(app, text)}>
      <summary>as it was sampled</summary>
      ${longText(app, key, text)}
    </details>`;
}

function argumentList(app: ViewerApp, key: string, given: readonly CallArgument[]): TemplateResult {
  if (given.length === 0) return html`<p class="faint">no arguments</p>`;
  return html`<dl class="arguments">
    ${given.map(
      ({ name, text }) =>
        html`<div>
          <dt>${visibleText(name)}</dt>
          <dd>${longText(app, `${key} ${name}`, text)}</dd>
        </div>`,
    )}
  </dl>`;
}

function wordless({ turnIndex }: TurnRecord, { app, tokenText, onSelect }: ConversationOptions) {
  const spelled = tokenText?.(turnIndex);
  if (spelled !== undefined) return longText(app, `tokens ${turnIndex}`, spelled);
  return html`<button type="button" class="wordless" @click=${() => onSelect(turnIndex)}>
    no words: show its tokens
  </button>`;
}

const statusWords: Readonly<Record<string, string>> = {
  ok: "call accepted",
  "invalid-json": "call refused: not valid JSON",
  "unclosed-block": "call refused: its block is not closed",
  "missing-name": "call refused: it names no tool",
  "malformed-structure": "call refused: malformed",
  "unknown-tool": "call refused: there is no such tool",
  "non-object-arguments": "call refused: its arguments are not an object",
  "schema-mismatch": "call refused: its arguments do not match the tool's schema",
  "schema-unchecked": "its arguments were not checked",
  "duplicate-call": "the same call again",
  "in-reasoning": "within the reasoning: not a call",
  "trailing-text": "text after the call",
  "marker-only": "a marker without a call",
  "double-encoded-arguments": "arguments encoded twice",
  coerced: "arguments were converted",
  "truncated-by-length": "cut off by length: not performed",
};

function attemptWords({ status, name, notes = [] }: AttemptRecord, turn: TurnRecord): string {
  const isRepaired =
    status !== "ok" && turn.steps.some((step) => step.repaired === true && step.source === name);
  const words = isRepaired
    ? `call mended and performed (${status})`
    : (statusWords[status] ?? status);
  const named = name === undefined ? words : `${visibleText(name)} · ${words}`;
  return notes.length === 0 ? named : `${named} (${notes.join(", ")})`;
}

function formFacts({ format, discarded = [], interruptionCount = 0 }: TurnRecord) {
  const facts = [
    ...(format?.leakedMarkup === true ? ["markup leaked into what others are shown"] : []),
    ...(format?.thinkingMalformed === true ? ["malformed reasoning"] : []),
    ...(interruptionCount > 0 ? [`interrupted and resumed ${interruptionCount} times`] : []),
    ...discarded.map(
      ({ reason, tokenCount }) =>
        `a sampling was discarded (${reason}${tokenCount === undefined ? "" : `, ${tokenCount} tokens`})`,
    ),
  ];
  return facts.length === 0
    ? nothing
    : html`<ul class="form-facts">
        ${facts.map((fact) => html`<li>${visibleText(fact)}</li>`)}
      </ul>`;
}

function stepEntry(app: ViewerApp, key: string, step: TurnStep): TemplateResult {
  const { source, observation, result, isError, repaired } = step;
  const isUser = source === "user";
  const verdict =
    result === "refused"
      ? "refused: it never reached the environment"
      : result === "ignored"
        ? "ignored"
        : isError === true
          ? "reports an error"
          : "";
  return html`<div class="said ${isUser ? "said-user" : "said-tool"}">
    <div class="who">
      ${isUser ? "user" : html`<span class="tool-name">${visibleText(source)}</span> answers`}
      ${verdict === "" ? nothing : html`<b class="warning">${verdict}</b>`}
      ${repaired === true ? html`<b class="warning">after it was mended</b>` : nothing}
    </div>
    <div class="body">
      ${observation === "" ? html`<span class="faint">nothing</span>` : longText(app, key, observation)}
    </div>
  </div>`;
}
