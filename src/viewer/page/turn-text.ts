import { html, type TemplateResult } from "lit/html.js";
import type { AttemptRecord, TurnRecord } from "../../episode/episode.ts";
import { callArguments, type CallArgument } from "../model/call-arguments.ts";
import { visibleText } from "../model/visible-text.ts";
import { hasHit, longText } from "./long-text.ts";
import type { ViewerApp } from "./viewer-app.ts";

/** Options for showing a turn's text. */
export interface TurnTextOptions {
  readonly app: ViewerApp;
  /** A name of the episode that no other episode on the page has. */
  readonly key: string;
  /** Called with the turn, and with the chosen part of its ids. */
  readonly onSelect: (turnIndex: number, tokenSpan?: readonly [number, number]) => void;
  /** Returns the text of a turn's tokens, or `undefined` if they are not in the shown row. */
  readonly tokenText?: (turnIndex: number) => string | undefined;
}

/** Renders a turn's text, with each attempted call marked by its result. */
export function turnText(turn: TurnRecord, options: TurnTextOptions): TemplateResult {
  const { app, key, onSelect } = options;
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
    if (before.trim() !== "")
      parts.push(longText(app, `${key} turn ${turnIndex} ${place}`, before));
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
        ${attemptBody(app, `${key} attempt ${turnIndex} ${index}`, text.slice(start, end), given[index])}
      </div>`,
    );
    place = end;
  }
  const rest = text.slice(place);
  if (rest.trim() !== "" || parts.length === 0) {
    parts.push(longText(app, `${key} turn ${turnIndex} ${place}`, rest));
  }
  return html`${parts}`;
}

/** Renders the calls of a turn of which only the performed ones are known. */
function performedCalls({ turnIndex, steps }: TurnRecord, { app, key }: TurnTextOptions) {
  return steps.flatMap(({ source, arguments: json }, index) => {
    const given = json === undefined ? undefined : callArguments(json);
    if (given === undefined) return [];
    return html`<div class="attempt attempt-ok">
      <b class="attempt-status">${visibleText(source)}</b>
      ${argumentList(app, `${key} call ${turnIndex} ${index}`, given)}
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

function wordless({ turnIndex }: TurnRecord, { app, key, tokenText, onSelect }: TurnTextOptions) {
  const spelled = tokenText?.(turnIndex);
  if (spelled !== undefined) return longText(app, `${key} tokens ${turnIndex}`, spelled);
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
