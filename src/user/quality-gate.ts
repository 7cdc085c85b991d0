import type { Task } from "../task.ts";
import { STOP_MARKER } from "./stop-marker.ts";
import { isLeaving, textOfLine, type User, type UserLine, type UserSession } from "./user.ts";

/** The problems that `findLineProblems()` detects. */
type LineProblem = "premature-stop" | "role-swap" | "leaked-instruction";

/** Settings of `withQualityGate()`. */
export interface QualityGateOptions {
  /** Maximum number of retakes of a line with problems. 0 only counts problems. Default 0. */
  readonly maxRetakes?: number;
  /** Maximum number of consecutive words that a line may share with the instruction. Default 12. */
  readonly maxSharedWords?: number;
}

/**
 * Checks a user's lines, counts problems in `usage().quality`, and resamples lines with problems if
 * `maxRetakes` allows it. A line that still has problems is sent. Lines of users without `retake()`
 * are only counted.
 *
 * The checks are heuristics on the text. See `findLineProblems()`.
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

/** The context for checking a line. */
interface LineContext {
  /** The agent's message before the line. `null` for the first line. */
  readonly agentText: string | null;
  readonly instruction: string;
  readonly maxSharedWords: number;
}

/**
 * Finds the problems of a user's line:
 *
 * - `premature-stop`: the user leaves or writes the stop marker in the first line, or together with
 *   other text in answer to a question. In the second case the agent asked for consent and can no
 *   longer act on it. Leaving without text counts as a decision.
 * - `role-swap`: the line starts with the agent's label, offers help, or reports work as the agent
 *   would. English only.
 * - `leaked-instruction`: the line shares more than `maxSharedWords` consecutive words with the
 *   instruction, ignoring case and punctuation. Text in quotation marks in the instruction is
 *   excluded, because the user may say it.
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

/** Returns the length of the longest run of words that both texts contain, in words. */
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

/** Text in quotation marks. An apostrophe between letters does not end it. */
const dictated = /(?<![\p{L}\p{N}])(?:"[^"]+"|“[^”]+”|['‘](?:[^'’]|['’](?=\p{L}))+['’](?!\p{L}))/gu;

/** Maximum number of compared words, because the time grows with the product of the lengths. */
const maxComparedWords = 1000;

function wordsOf(text: string): readonly string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}#@]+/gu) ?? []).slice(0, maxComparedWords);
}
