import { isObject } from "../../values/is-object.ts";
import { isTokenId } from "../../engine/token-id.ts";
import { hashIds } from "../../trajectory/rolling-hash.ts";
import { isCount, quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import type { Episode, TreeTurn } from "../episode.ts";
import { rejections, turnEdges, turnRoles } from "../turn-lineage.ts";

/**
 * Checks an episode's tree. Each turn continues an earlier turn or has a cause, and starts after the ids of the turn
 * that it continues. Each turn of the episode is in the tree once.
 */
export function checkTree(tree: unknown, turns: readonly unknown[]): Violation[] {
  if (tree === undefined) return [];
  if (!Array.isArray(tree)) return [{ rule: "tree", detail: "tree is not a list" }];
  const places = new Map<unknown, number>();
  const found = tree.flatMap((node: unknown, at): Violation[] => {
    const place = `tree[${at}]`;
    if (!isTreeTurn(node)) return [{ rule: "tree", detail: `${place} is not a turn of a tree` }];
    const wrong = [
      ...checkParent(node, { at, tree }),
      ...checkLineage(node, { at, tree }),
      ...checkTurn(node, turns),
    ];
    if (node.turnIndex !== undefined) {
      const other = places.get(node.turnIndex);
      if (other !== undefined) wrong.push(`is turn ${node.turnIndex}, as tree[${other}] is`);
      places.set(node.turnIndex, at);
    }
    return wrong.map((detail) => ({ rule: "tree", detail: `${place} ${detail}` }));
  });
  turns.forEach((_, turnIndex) => {
    if (places.has(turnIndex)) return;
    found.push({ rule: "tree", detail: `turn ${turnIndex} is not in the tree` });
  });
  return found;
}

function isTreeTurn(node: unknown): node is RawRow & TreeTurn {
  return (
    isObject(node) &&
    isCount(node["promptTokenCount"]) &&
    isCount(node["sampledTokenCount"]) &&
    typeof node["outputHash"] === "string" &&
    typeof node["isDelivered"] === "boolean" &&
    typeof node["model"] === "string" &&
    [node["parent"], node["turnIndex"]].every((place) => place === undefined || isCount(place)) &&
    (node["droppedStopId"] === undefined || isTokenId(node["droppedStopId"]))
  );
}

function checkParent(
  { parent, cause, promptTokenCount }: RawRow & TreeTurn,
  { at, tree }: { readonly at: number; readonly tree: readonly unknown[] },
): string[] {
  if (parent === undefined) {
    return typeof cause === "string" && cause !== "" ? [] : ["continues no turn, and has no cause"];
  }
  if (cause !== undefined) return [`continues a turn, and has the cause ${quote(cause)}`];
  const before = tree[parent];
  if (parent >= at || !isTreeTurn(before)) return [`continues tree[${parent}], no earlier turn`];
  const { sampledTokenCount, droppedStopId } = before;
  const dropped = droppedStopId === undefined ? 0 : 1;
  const end = before.promptTokenCount + sampledTokenCount - dropped;
  if (promptTokenCount >= end) return [];
  return [
    `was sampled after ${promptTokenCount} ids, but the turn that it continues ends at ${end}`,
  ];
}

/**
 * Checks the words and the link of a turn's lineage. No row may train a rejected turn, and no turn may continue one.
 */
function checkLineage(
  node: RawRow & TreeTurn,
  { at, tree }: { readonly at: number; readonly tree: readonly unknown[] },
): string[] {
  const { role, from, rejected, turnIndex } = node;
  const parent = node.parent === undefined ? undefined : tree[node.parent];
  const isRejected = isObject(parent) && parent["rejected"] !== undefined;
  return [
    ...(isWordOf(turnRoles, role) ? [] : [`has the role ${quote(role)}`]),
    ...(from === undefined ? [] : checkLink(from, at)),
    ...(isWordOf(rejections, rejected) ? [] : [`is rejected for ${quote(rejected)}`]),
    ...(rejected === undefined || turnIndex === undefined
      ? []
      : ["is rejected, and a row trains it"]),
    ...(isRejected ? [`continues tree[${node.parent}], which is rejected`] : []),
  ];
}

function checkLink(from: unknown, at: number): string[] {
  const { turn, edge } = isObject(from) ? from : {};
  if (!isCount(turn) || turn >= at) return [`comes from tree[${quote(turn)}], no earlier turn`];
  return turnEdges.some((each) => each === edge) ? [] : [`has a link of the kind ${quote(edge)}`];
}

function isWordOf(words: readonly string[], value: unknown): boolean {
  return value === undefined || words.some((word) => word === value);
}

function checkTurn(node: RawRow & TreeTurn, turns: readonly unknown[]): string[] {
  if (node.turnIndex === undefined) return [];
  const turn = turns[node.turnIndex];
  if (!isObject(turn)) return [`is turn ${node.turnIndex}, and there are ${turns.length}`];
  return (["promptTokenCount", "sampledTokenCount"] as const)
    .filter((name) => turn[name] !== node[name])
    .map((name) => `has ${name} ${node[name]}, and turn ${node.turnIndex} ${quote(turn[name])}`);
}

/**
 * Compares a training row with its episode's tree. The row is the path from a root to the row's last turn. Each turn on
 * the path has its sampled ids in the row: with mask 1 if the row trains the turn, and with mask 0 if another row does.
 */
export function compareTree(row: RawRow, { tree }: Pick<Episode, "tree">): Violation[] {
  const { tokenIds, lossMask, turns } = row;
  if (tree === undefined || !Array.isArray(tokenIds) || !Array.isArray(lossMask)) return [];
  if (!Array.isArray(turns) || !turns.every(isObject)) return [];
  const spans = new Map(turns.map((turn) => [turn["turnIndex"], turn]));
  const last = tree.findIndex(({ turnIndex }) => turnIndex === turns.at(-1)?.["turnIndex"]);
  const path = pathTo(tree, last);
  const onPath = new Set(path.map(({ turnIndex }) => turnIndex));
  const strays = [...spans.keys()]
    .filter((turnIndex) => !onPath.has(turnIndex as number | undefined))
    .map((turnIndex) => `trains turn ${quote(turnIndex)}, which its last turn does not continue`);
  const wrong = path.flatMap((node, at): string[] => {
    const span = node.turnIndex === undefined ? undefined : spans.get(node.turnIndex);
    const end = endOf(node, { isLast: at === path.length - 1, ids: tokenIds });
    const about = `the turn at ${node.promptTokenCount}`;
    if (end === undefined) return [`${about} is not there with the ids that were sampled`];
    const isTrained = span !== undefined;
    if (isTrained && span["outputHash"] !== node.outputHash) {
      return [`${about} has another hash than in the tree`];
    }
    const mask = lossMask.slice(node.promptTokenCount, end);
    if (mask.every((bit) => (bit === 1) === isTrained)) return [];
    return [`${about} is ${isTrained ? "trained here" : "context here"}, and the mask differs`];
  });
  return [...strays, ...wrong].map((detail) => ({ rule: "tree", detail: `the row: ${detail}` }));
}

function pathTo(tree: readonly TreeTurn[], last: number): readonly TreeTurn[] {
  const path: TreeTurn[] = [];
  let at: number | undefined = last;
  // Another check finds cycles.
  while (at !== undefined && at >= 0 && path.length <= tree.length) {
    const node: TreeTurn | undefined = tree[at];
    if (node === undefined) break;
    path.push(node);
    at = node.parent;
  }
  return path.toReversed();
}

/** Returns the end of a turn in the row, or `undefined` if the row does not contain its ids. */
function endOf(
  node: TreeTurn,
  { isLast, ids }: { readonly isLast: boolean; readonly ids: readonly unknown[] },
): number | undefined {
  const { promptTokenCount: start, sampledTokenCount, droppedStopId, outputHash } = node;
  const isShort = droppedStopId !== undefined && !isLast;
  const end = start + sampledTokenCount - (isShort ? 1 : 0);
  const sampled = [...ids.slice(start, end), ...(isShort ? [droppedStopId] : [])];
  const isComplete = sampled.length === sampledTokenCount && sampled.every((id) => isTokenId(id));
  return isComplete && hashIds(sampled) === outputHash ? end : undefined;
}
