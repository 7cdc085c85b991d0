import { html, nothing, type TemplateResult } from "lit/html.js";
import type { TreeTurn } from "../../episode/episode.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { causeWords } from "../model/branch-cause.ts";
import type { RowBranch } from "../model/row-tree.ts";
import type { Route } from "../model/route.ts";
import { visibleText } from "../model/visible-text.ts";
import { formatNumber } from "./parts.ts";
import type { ViewerApp } from "./viewer-app.ts";

type EpisodeRoute = Extract<Route, { page: "episode" }>;

/**
 * Renders the rows of an episode with several rows as a tree, with the parent and the cause of
 * each.
 */
export function branchTree(
  app: ViewerApp,
  route: EpisodeRoute,
  { tree = [], sampleHashes = [] }: Partial<Pick<EpisodeRow, "tree" | "sampleHashes">>,
): TemplateResult | typeof nothing {
  const branches = app.branches(route);
  if (branches.state !== "ready" || branches.value.length < 2) return nothing;
  const rows = branches.value;
  const rootCount = rows.filter(({ parent }) => parent === undefined).length;
  return html`<details class="tree" open>
    <summary>
      ${sampleHashes.length > rows.length ? `the first ${rows.length} of ${sampleHashes.length}` : rows.length}
      training rows:
      ${
        rows.some(({ cause }) => cause !== undefined)
          ? `${rootCount} ${rootCount === 1 ? "root" : "roots"}, ${rows.length - rootCount} branching after a turn`
          : "the history was rewritten, or branches"
      }
    </summary>
    ${rowsBelow(app, route, { rows, parent: undefined })} ${untrainedWords(tree)}
  </details>`;
}

/** Describes the number of turns that no row trains, with the reason if it is known. */
function untrainedWords(tree: readonly TreeTurn[]): TemplateResult | typeof nothing {
  const untrained = tree.filter(({ turnIndex }) => turnIndex === undefined);
  if (untrained.length === 0) return nothing;
  const lost = untrained.filter(({ isDelivered }) => !isDelivered).length;
  const others = untrained.length - lost;
  const reasons = [
    ...(lost === 0 ? [] : [`${lost} never reached the client`]),
    ...(others === 0
      ? []
      : [`${others} were sampled for another model, or belong to a row that is left out`]),
  ];
  return html`<p class="untrained faint">
    ${untrained.length === 1 ? "1 more turn was" : `${untrained.length} more turns were`} sampled
    and ${untrained.length === 1 ? "is" : "are"} not trained: ${reasons.join("; ")}
  </p>`;
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
        html`<li data-row=${branch.row} data-cause=${branch.cause ?? nothing}>
          <button
            type="button"
            aria-pressed=${branch.row === route.row}
            @click=${() => app.go({ ...rest, row: branch.row })}
          >
            row ${branch.row}
          </button>
          ${branchWords(branch)} ${rowsBelow(app, route, { rows, parent: branch.row })}
        </li>`,
    )}
  </ul>`;
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
export function placeOf({ parent, sharedCount, afterTurn, cause }: RowBranch): TemplateResult {
  if (parent === undefined) {
    return cause === undefined
      ? html``
      : html`<b class="cause">${visibleText(cause)}</b>: ${visibleText(causeWords(cause))} ·`;
  }
  return afterTurn === undefined
    ? html`differs from the prompt of row ${parent} from token ${formatNumber(sharedCount)} on ·`
    : html`branches from row ${parent} after its turn ${afterTurn}, at token
      ${formatNumber(sharedCount)} ·`;
}
