import { html, nothing, type TemplateResult } from "lit/html.js";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { describeRole } from "../../report/rows/lineage-words.ts";
import { causeWords } from "../model/branch-cause.ts";
import { originWords } from "../model/row-origin.ts";
import type { RowBranch } from "../model/row-tree.ts";
import type { Route } from "../model/route.ts";
import { untrainedTurns } from "../model/untrained-turn.ts";
import { visibleText } from "../model/visible-text.ts";
import { formatNumber } from "./parts.ts";
import { untrainedList } from "./untrained-list.ts";
import type { ViewerApp } from "./viewer-app.ts";

type EpisodeRoute = Extract<Route, { page: "episode" }>;

/**
 * Renders the rows of an episode with several rows as a tree, with the role, the origin, the parent
 * and the cause of each, and the turns that no row trains.
 */
export function branchTree(
  app: ViewerApp,
  route: EpisodeRoute,
  { tree = [], sampleHashes = [] }: Partial<Pick<EpisodeRow, "tree" | "sampleHashes">>,
): TemplateResult | typeof nothing {
  const branches = app.branches(route);
  const rows = branches.state === "ready" && branches.value.length > 1 ? branches.value : [];
  const untrained = untrainedTurns(tree);
  if (rows.length === 0 && untrained.length === 0) return nothing;
  return html`<details class="tree" open>
    <summary>
      ${
        rows.length === 0
          ? `${formatNumber(untrained.length)} sampled ${untrained.length === 1 ? "turn is" : "turns are"} not trained`
          : rowsSummary(rows, sampleHashes.length)
      }
    </summary>
    ${rowsBelow(app, route, { rows, parent: undefined })} ${untrainedList(untrained)}
  </details>`;
}

function rowsSummary(rows: readonly RowBranch[], rowCount: number): TemplateResult {
  const rootCount = rows.filter(({ parent }) => parent === undefined).length;
  const shown = rowCount > rows.length ? `the first ${rows.length} of ${rowCount}` : rows.length;
  return html`${shown} training rows:
  ${
    rows.some(({ cause }) => cause !== undefined)
      ? `${rootCount} ${rootCount === 1 ? "root" : "roots"}, ${rows.length - rootCount} branching after a turn`
      : "the history was rewritten, or branches"
  }`;
}

function rowsBelow(
  app: ViewerApp,
  route: EpisodeRoute,
  { rows, parent }: { readonly rows: readonly RowBranch[]; readonly parent: number | undefined },
): TemplateResult | typeof nothing {
  const own = rows.filter((branch) => branch.parent === parent);
  if (own.length === 0) return nothing;
  const { token: _token, turn: _turn, ...rest } = route;
  return html`<ul>
    ${own.map(
      (branch) =>
        html`<li
          data-row=${branch.row}
          data-cause=${branch.cause ?? nothing}
          data-role=${branch.role ?? nothing}
        >
          <button
            type="button"
            aria-pressed=${branch.row === route.row}
            @click=${() => app.go({ ...rest, row: branch.row })}
          >
            row ${branch.row}
          </button>
          ${originLink(app, route, branch)} ${branchWords(branch)}
          ${rowsBelow(app, route, { rows, parent: branch.row })}
        </li>`,
    )}
  </ul>`;
}

/** Renders a row's role, and a button to the turn from which the row follows. */
function originLink(app: ViewerApp, route: EpisodeRoute, branch: RowBranch) {
  const { role, from } = branch;
  if (role === undefined) return nothing;
  const name = html`<b class="role role-${role}">${visibleText(describeRole(role))}</b>`;
  if (from === undefined || isShownByPlace(branch)) return html`${name} ·`;
  const { token: _token, ...rest } = route;
  return html`${name}
    <button
      type="button"
      class="origin"
      title="show this turn"
      @click=${() => app.go({ ...rest, row: from.row, turn: from.turnIndex })}
    >
      ${visibleText(originWords(from))}
    </button>
    ·`;
}

/** True if the words for the row's place already name the turn that the row continues. */
function isShownByPlace({ from, parent, afterTurn }: RowBranch): boolean {
  return from?.edge === "continuation" && from.row === parent && from.turnIndex === afterTurn;
}

/** Describes a row's role and origin, such as `sub-agent, called by turn 3 of row 0`. */
export function roleAndOrigin(branch: RowBranch): TemplateResult | typeof nothing {
  const { role, from } = branch;
  if (role === undefined) return nothing;
  const link = from === undefined || isShownByPlace(branch) ? "" : `, ${originWords(from)}`;
  return html`<b class="role role-${role}">${visibleText(describeRole(role))}</b
    >${visibleText(link)} ·`;
}

function branchWords(branch: RowBranch): TemplateResult {
  const { trainedCount, tokenCount, turnIndexes } = branch;
  const [first, last] = [turnIndexes[0], turnIndexes.at(-1)];
  const turns =
    first === undefined ? "" : first === last ? `turn ${first}, ` : `turns ${first} to ${last}, `;
  return html`${placeOf(branch)}
    <span class="faint"
      >${turns}${formatNumber(trainedCount)} of ${formatNumber(tokenCount)} tokens trained</span
    >`;
}

/** Describes a row's parent or, for a root, the cause of the new root. */
export function placeOf(branch: RowBranch): TemplateResult {
  const { parent, sharedCount, afterTurn, cause, role } = branch;
  if (parent === undefined) {
    if (cause === undefined) return html``;
    const words = visibleText(causeWords(cause));
    // A known role explains more than the words for the cause.
    return role === undefined || role === "unknown"
      ? html`<b class="cause">${visibleText(cause)}</b>: ${words} ·`
      : html`<span class="cause" title=${words}>${visibleText(cause)}</span> ·`;
  }
  return afterTurn === undefined
    ? html`differs from the prompt of row ${parent} from token ${formatNumber(sharedCount)} on ·`
    : html`branches from row ${parent} after its turn ${afterTurn}, at token
      ${formatNumber(sharedCount)} ·`;
}
