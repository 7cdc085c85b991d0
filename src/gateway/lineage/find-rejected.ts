import type { Rejection } from "../../episode/turn-lineage.ts";
import { windowName } from "./client-labels.ts";
import type { Conversations } from "./conversations.ts";
import type { TurnEvidence } from "./turn-evidence.ts";

/**
 * Finds the summaries and repeated replies that no turn continued or used, each with the evidence. A turn without
 * evidence is not rejected.
 */
export function findRejected(
  evidence: readonly TurnEvidence[],
  conversations: Conversations,
): ReadonlyMap<number, Rejection> {
  const used = usedSummaries(evidence, conversations);
  const windows = lastTurnsOfWindows(evidence);
  const resumed = lastContinuations(evidence, conversations);
  const resumedTexts = shortTextsOf(evidence, conversations);
  const restarted = restartedRequests(evidence);
  const rejectionOf = (turn: TurnEvidence): Rejection | undefined => {
    const { index, request, link, shortText, isAnswer } = turn;
    if (conversations.continuedBy(index) !== undefined) return undefined;
    const others = historiesOf(turn, evidence).flatMap((history) => used.get(history) ?? []);
    if (others.some((other) => other.latest > index && asksAlike(turn, other))) {
      return "later-summary";
    }
    // A short report of a sub-agent may have come back, also if an equal sub-agent went further. Two equal reports are
    // one that was requested again.
    const mayBeReport =
      shortText !== undefined &&
      conversations.roleOf(index) === "subagent" &&
      resumedTexts.get(request)?.has(shortText) !== true;
    // An agent that starts over may have ended one of its rounds with a single answer.
    const mayBeRound = isAnswer && restarted.has(request);
    const isResumed = (resumed.get(request) ?? -1) > index;
    if (isResumed && !mayBeReport && !mayBeRound) return "resumed-sibling";
    const last = link.isCompaction ? windows.get(windowName(link)) : undefined;
    return last !== undefined && last > index ? "client" : undefined;
  };
  return new Map(
    evidence.flatMap((turn) => {
      const rejection = rejectionOf(turn);
      return rejection === undefined ? [] : [[turn.index, rejection]];
    }),
  );
}

/**
 * Returns the requests that the client repeated after it had continued a reply to them. Such a client starts over on
 * purpose.
 */
function restartedRequests(evidence: readonly TurnEvidence[]): ReadonlySet<string> {
  const continued = new Set<string>();
  const restarted = new Set<string>();
  for (const { parent, request } of evidence) {
    if (continued.has(request)) restarted.add(request);
    if (parent !== undefined) continued.add(evidence[parent]!.request);
  }
  return restarted;
}

/** Returns the short texts of the replies to each request that a later turn continues. */
function shortTextsOf(
  evidence: readonly TurnEvidence[],
  conversations: Conversations,
): ReadonlyMap<string, ReadonlySet<string>> {
  const texts = new Map<string, Set<string>>();
  for (const { index, request, shortText } of evidence) {
    if (shortText === undefined || conversations.continuedBy(index) === undefined) continue;
    texts.set(request, (texts.get(request) ?? new Set()).add(shortText));
  }
  return texts;
}

/**
 * Returns, for each request, the last turn that continues a reply to it. A still newer reply means that the client went
 * back to the request.
 */
function lastContinuations(
  evidence: readonly TurnEvidence[],
  conversations: Conversations,
): ReadonlyMap<string, number> {
  const last = new Map<string, number>();
  for (const { index, request } of evidence) {
    const turn = conversations.continuedBy(index) ?? -1;
    if (turn > (last.get(request) ?? -1)) last.set(request, turn);
  }
  return last;
}

/** A request for a summary whose reply a later root uses. */
interface UsedSummary {
  readonly order: string | undefined;
  readonly isCompaction: boolean;
  /** Index of the last root that uses a reply to such a request. */
  latest: number;
}

/** Returns the requests whose summaries were used, by the history that they summarise. */
function usedSummaries(
  evidence: readonly TurnEvidence[],
  conversations: Conversations,
): ReadonlyMap<string, readonly UsedSummary[]> {
  const used = new Map<string, UsedSummary[]>();
  for (const turn of evidence) {
    const user = conversations.usedBy(turn.index);
    if (user === undefined) continue;
    const { order, link } = turn;
    for (const history of historiesOf(turn, evidence)) {
      const found = used.get(history) ?? [];
      used.set(history, found);
      const same = found.find((each) => each.order === order);
      if (same === undefined) found.push({ order, isCompaction: link.isCompaction, latest: user });
      else same.latest = Math.max(same.latest, user);
    }
  }
  return used;
}

/** Returns the names of the history that a request for a summary repeats. */
function historiesOf(
  { parent, repeated, link }: TurnEvidence,
  evidence: readonly TurnEvidence[],
): readonly string[] {
  const before = parent ?? repeated;
  const root = before === undefined ? [] : [`root ${evidence[before]!.root}`];
  return link.isCompaction ? [...root, `window ${windowName(link)}`] : root;
}

/**
 * True if both turns are replies to a request for a summary: the client says so, or both requests have the same last
 * message.
 */
function asksAlike({ order, link }: TurnEvidence, other: UsedSummary): boolean {
  if (link.isCompaction && other.isCompaction) return true;
  if (order === undefined || other.order === undefined) return false;
  return order.startsWith(other.order) || other.order.startsWith(order);
}

/** Returns the last turn in each window of a thread that is not a summary. Windows are counted by the client. */
function lastTurnsOfWindows(evidence: readonly TurnEvidence[]): ReadonlyMap<string, number> {
  return new Map(
    evidence
      .filter(({ link }) => !link.isCompaction && link.window !== undefined)
      .map(({ link, index }) => [windowName(link), index]),
  );
}
