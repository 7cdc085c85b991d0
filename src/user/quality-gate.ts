import type { Task } from "../task.ts";
import { STOP_MARKER } from "./stop-marker.ts";
import { isLeaving, textOfLine, type User, type UserLine, type UserSession } from "./user.ts";

/** What can look wrong with a user's line. */
type LineProblem = "premature-stop" | "role-swap" | "leaked-instruction";

/** Settings of `withQualityGate()`. */
export interface QualityGateOptions {
  /** How often a line that looks wrong is sampled again; 0 only counts. Default 0. */
  readonly maxRetakes?: number;
  /** Words in a row that a line may share with the instruction. Default 12. */
  readonly maxSharedWords?: number;
}

/**
 * Watches a user's lines and counts those that look wrong in `usage().quality`; where asked, such a
 * line is sampled again. A line that still looks wrong afterwards is sent: the gate measures and
 * improves, it does not judge an episode. Users that cannot take a line back are only watched.
 *
 * The checks are guesses from the text alone; see `findLineProblems()`.
 */
export function withQualityGate(user: User, options: QualityGateOptions = {}): User {
  return {
    strategy: user.strategy,
    ...(user.repeatable !== undefined && { repeatable: user.repeatable }),
    open: (task, start) => watch(user.open(task, start), task, options),
    ...(user.close !== undefined && { close: async () => await user.close?.() }),
  };
}

function watch(session: UserSession, task: Task, options: QualityGateOptions): UserSession {
  const { maxRetakes = 0, maxSharedWords = 12 } = options;
  const problems: Partial<Record<LineProblem, number>> = {};
  let retakeCount = 0;

  async function check(
    line: UserLine,
    agentText: string | null,
    { signal }: { signal: AbortSignal },
  ): Promise<UserLine> {
    let current = line;
    for (let round = 0; ; round++) {
      const { instruction } = task;
      const found = findLineProblems(current, { agentText, instruction, maxSharedWords });
      for (const problem of found) problems[problem] = (problems[problem] ?? 0) + 1;
      if (found.length === 0 || round >= maxRetakes || session.retake === undefined) return current;
      current = await session.retake({ signal });
      retakeCount += 1;
    }
  }

  let lastAgentText: string | null = null;
  return {
    async begin(call) {
      lastAgentText = null;
      return textOfLine(await check(await session.begin(call), null, call));
    },
    async reply(agentText, call) {
      lastAgentText = agentText;
      return await check(await session.reply(agentText, call), agentText, call);
    },
    ...(session.retake !== undefined && {
      async retake(call: { signal: AbortSignal }) {
        return await check((await session.retake?.(call)) as UserLine, lastAgentText, call);
      },
    }),
    usage: () => ({ ...session.usage(), quality: { problems: { ...problems }, retakeCount } }),
  };
}

/** What a line is checked against. */
interface LineContext {
  /** What the agent said before it; `null` for the opening line. */
  readonly agentText: string | null;
  readonly instruction: string;
  readonly maxSharedWords: number;
}

/**
 * Finds what looks wrong with a user's line:
 *
 * - `premature-stop`: the user leaves (or writes the stop marker) in the opening line (which model users
 *   whose `first-line-stop` is repaired never do), or with other
 *   text in answer to a question (the agent asked for a go-ahead, got it, and may not act on it any
 *   more). Leaving without a word is taken for a decision, also where it is a wrong one.
 * - `role-swap`: the line opens with the agent's label, offers help, or reports work as the agent
 *   would. English only.
 * - `leaked-instruction`: the line shares more than `maxSharedWords` words in a row with the
 *   instruction, letter case and punctuation aside. What the instruction puts in quotation marks
 *   is dictated, and may be said.
 *
 * On the 1,490 user lines of τ-bench's published gpt-4o runs on airline (200 conversations) this
 * finds 3 premature stops, of which 2 only decline an offer, no swapped role, and 3 leaks.
 */
export function findLineProblems(said: UserLine, context: LineContext): readonly LineProblem[] {
  const line = textOfLine(said);
  const leaves = isLeaving(said) || line.includes(STOP_MARKER);
  const problems: LineProblem[] = [];
  if (leaves && isPremature(line, context)) problems.push("premature-stop");
  if (agentPhrases.test(line)) problems.push("role-swap");
  const description = context.instruction.replace(dictated, " | ");
  if (longestSharedRun(line, description) > context.maxSharedWords) {
    problems.push("leaked-instruction");
  }
  return problems;
}

function isPremature(line: string, { agentText }: LineContext): boolean {
  if (agentText === null) return true;
  const saysMore = /\p{L}/u.test(line.replaceAll(STOP_MARKER, ""));
  return saysMore && /\?\W*$/.test(agentText);
}

const agentPhrases = new RegExp(
  [
    /^\s*(?:agent|assistant|representative)\s*:/,
    /\b(?:how|what) (?:can|may|could) i (?:help|assist|do for) you\b/,
    /\b(?:anything|something) else (?:that )?i (?:can|could|may) (?:help|assist|do for)\b/,
    /\bi(?:'d| would| will|'ll) be (?:happy|glad) to (?:help|assist) you\b/,
    /\bi (?:have|'ve) (?:now |successfully )*(?:processed|cancell?ed|updated|modified) your\b/,
    /\bi (?:have|'ve) (?:now |successfully )*(?:exchanged|refunded|returned|booked) your\b/,
    /\bto (?:verify|confirm) your identity\b.*\b(?:please provide|could you)\b/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "i",
);

/** The length of the longest run of words that both texts have, in words. */
function longestSharedRun(line: string, instruction: string): number {
  const left = wordsOf(line);
  const right = wordsOf(instruction);
  let longest = 0;
  // `runs[j]` is the length of the common run that ends at the current word and at `right[j - 1]`.
  let runs = new Uint16Array(right.length + 1);
  for (const word of left) {
    const next = new Uint16Array(right.length + 1);
    for (let j = 1; j <= right.length; j++) {
      if (right[j - 1] !== word) continue;
      const run = (runs[j - 1] ?? 0) + 1;
      next[j] = run;
      if (run > longest) longest = run;
    }
    runs = next;
  }
  return longest;
}

/** Text in quotation marks; an apostrophe between letters ends none. */
const dictated = /(?<![\p{L}\p{N}])(?:"[^"]+"|“[^”]+”|['‘](?:[^'’]|['’](?=\p{L}))+['’](?!\p{L}))/gu;

/** Longer texts are compared by their beginning: the work grows with the product of lengths. */
const maxComparedWords = 1000;

function wordsOf(text: string): readonly string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}#@]+/gu) ?? []).slice(0, maxComparedWords);
}
