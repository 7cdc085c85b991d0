import { html, nothing, type TemplateResult } from "lit/html.js";
import type { TurnRecord, TurnStep } from "../../episode/episode.ts";
import { shownSteps } from "../../episode/turn/shown-steps.ts";
import type { Message } from "../../message.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { openingMessages } from "../model/lists/find-hits.ts";
import type { RowBranch } from "../model/row-tree.ts";
import { untrainedTurns, type UntrainedTurn } from "../model/untrained-turn.ts";
import { visibleText } from "../model/visible-text.ts";
import { placeOf, roleAndOrigin } from "./branch-tree.ts";
import { hasHit, longText } from "./long-text.ts";
import { formatDuration } from "./parts.ts";
import { turnText, type TurnTextOptions } from "./turn-text.ts";
import { untrainedWords } from "./untrained-list.ts";
import type { ViewerApp } from "./viewer-app.ts";
import { formatCount } from "../../text/format-count.ts";

/** Options for showing a conversation. */
interface ConversationOptions extends Omit<TurnTextOptions, "key"> {
  readonly selectedTurn: number | undefined;
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
      <div class="body">${turnText(turn, { ...options, key: row.rolloutId })}</div>
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
