import { InvariantError, RolloutError } from "../errors.ts";
import { callThrough, type Outside } from "../outside.ts";
import { addSpending, noSpending } from "./chat/add-spending.ts";
import type { ChatMessage, ChatModel, ChatReply } from "./chat/chat-model.ts";
import { leaveOutThoughts } from "./leave-out-thoughts.ts";
import { ownUserPrompts } from "./own-user-prompts.ts";
import type { InstructedPrompt, UserPrompts } from "./user-prompts.ts";
import { defaultGreeting, fillInstruction } from "./user-prompts.ts";
import type { UserRepairChoice } from "./user-repairs.ts";
import { isRepaired } from "./user-repairs.ts";
import { hasStopMarker, readStopMarker, STOP_MARKER } from "./stop-marker.ts";
import type { User, UserSession, UserSpending } from "./user.ts";

/** Settings that all model users share. */
export interface ModelUserOptions {
  /** The model that plays the user. */
  readonly model: ChatModel;
  /**
   * The prompts of the model. Default: prompts that are not from a benchmark. `readUserPrompts()` reads a benchmark's
   * prompts.
   */
  readonly prompts?: UserPrompts;
  /**
   * Behaviours of τ-bench's simulators to correct. Default: none with `prompts`, so that numbers
   * are comparable; otherwise all.
   */
  readonly repair?: UserRepairChoice;
  /**
   * The agent's first message in the simulator's memory. Default `Hi! How can I help you today?`.
   */
  readonly greeting?: string;
  /** The sampling temperature. If absent, the server's default, as in τ-bench. */
  readonly temperature?: number;
  /** Maximum length of a line in tokens. If absent, the server's default, as in τ-bench. */
  readonly maxTokens?: number;
  /** True if calls carry a seed that is derived from the episode's. Not every server accepts a seed. Default false. */
  readonly seeded?: boolean;
}

/** Maximum number of attempts for a first line that is not a stop marker. */
const maxFirstLines = 3;

/** The inputs of a strategy for the user's next line. */
export interface UserTurn {
  /** The simulator's messages. The customer is the assistant there, and the agent is the user. */
  readonly memory: ChatMessage[];
  /** Calls the model that plays the user, or another model, and returns its text. */
  readonly ask: (
    messages: readonly ChatMessage[],
    options?: { model?: ChatModel },
  ) => Promise<string>;
}

/** A strategy by which a model plays a user. */
export interface UserStrategy {
  readonly name: string;
  readonly systemPrompt: InstructedPrompt;
  /** Returns the next line and updates the memory. */
  nextLine(turn: UserTurn): Promise<string>;
}

/** Returns the prompts of a model user's options. */
export function promptsOf({ prompts = ownUserPrompts }: ModelUserOptions): UserPrompts {
  return prompts;
}

/** Returns the repairs of a model user's options. */
export function repairsOf({ repair, prompts }: ModelUserOptions): UserRepairChoice {
  return repair ?? (prompts === undefined ? "all" : []);
}

/** Creates a user that plays each task's instruction with a strategy. */
export function modelUser(strategy: UserStrategy, options: ModelUserOptions): User {
  return {
    strategy: strategy.name,
    repeatable: true,
    open: ({ instruction }, { seed, outside }) =>
      openModelConversation(strategy, options, {
        instruction,
        seed,
        ...(outside && { outside }),
      }),
  };
}

/**
 * Opens a conversation with a strategy. τ-bench first requests a line (`react`: two) without an
 * instruction and discards it; this call is omitted here.
 *
 * The user leaves by writing the stop marker. Calls of the session throw RolloutError
 * `user/empty-reply` for a line without text, `user/bad-reply` for a line that the strategy cannot
 * read and for a first line that stays a stop marker, and the errors of the chat model. An error
 * leaves the memory unchanged.
 */
export function openModelConversation(
  strategy: UserStrategy,
  options: ModelUserOptions,
  about: {
    readonly instruction: string | null;
    readonly seed: number;
    /** Default `callThrough`. */
    readonly outside?: Outside;
  },
): UserSession {
  const { instruction, seed, outside = callThrough } = about;
  const { greeting = defaultGreeting } = options;
  const calls = countedCalls(options, { seed, outside });
  const memory: ChatMessage[] = [
    { role: "system", content: fillInstruction(strategy.systemPrompt, instruction) },
  ];
  const repair = repairsOf(options);
  /** The messages before the first line. */
  let opening: readonly ChatMessage[] | undefined;
  /** The messages before the last line. */
  let beforeLine: readonly ChatMessage[] | undefined;

  async function requestLine(signal: AbortSignal): Promise<string> {
    const line = await strategy.nextLine({
      memory,
      ask: (messages, { model = options.model } = {}) => calls.ask(messages, { model, signal }),
    });
    if (line.trim() !== "") return line;
    throw new RolloutError(
      "user/empty-reply",
      `Cannot use the user's line: ${strategy.name} returned an empty one, expected text`,
      { retryable: true },
    );
  }

  async function requestLineAfter(
    start: readonly ChatMessage[],
    signal: AbortSignal,
  ): Promise<string> {
    memory.splice(0, memory.length, ...start);
    return await requestLine(signal);
  }

  /** Repeats the call if the first line is a stop marker. */
  async function requestFirstLine(start: readonly ChatMessage[], signal: AbortSignal) {
    for (let attempt = 1; attempt <= maxFirstLines; attempt++) {
      const line = await requestLineAfter(start, signal);
      if (!hasStopMarker(line, repair)) return line;
    }
    throw new RolloutError(
      "user/bad-reply",
      `Cannot use the user's first line: ${strategy.name} wrote the stop marker ${STOP_MARKER} ` +
        `${maxFirstLines} times, expected the user's request; check the instruction and the model`,
      { retryable: true },
    );
  }

  async function sayAfter(start: readonly ChatMessage[], signal: AbortSignal): Promise<string> {
    const saved = memory.slice();
    const mayNotStop = start === opening && isRepaired(repair, "first-line-stop");
    try {
      const line = await (mayNotStop ? requestFirstLine : requestLineAfter)(start, signal);
      beforeLine = start;
      return line;
    } catch (error) {
      memory.splice(0, memory.length, ...saved);
      throw error;
    }
  }

  return {
    begin: async ({ signal }) => {
      opening = [...memory, { role: "user", content: greeting }];
      return await sayAfter(opening, signal);
    },
    reply: async (content, { signal }) =>
      readStopMarker(await sayAfter([...memory, { role: "user", content }], signal), repair),
    retake: async ({ signal }) => {
      if (beforeLine === undefined) throw new InvariantError("retake() needs a line that was said");
      return readStopMarker(await sayAfter(beforeLine, signal), repair);
    },
    usage: () => calls.usage(),
  };
}

/** Calls models for one conversation and sums the usage. */
function countedCalls(
  options: ModelUserOptions,
  { seed, outside }: { readonly seed: number; readonly outside: Outside },
) {
  const { temperature, maxTokens, seeded = false } = options;
  const repair = repairsOf(options);
  let usage: UserSpending = noSpending;
  let askedCount = 0;
  return {
    usage: () => usage,
    async ask(
      messages: readonly ChatMessage[],
      { model, signal }: { model: ChatModel; signal: AbortSignal },
    ): Promise<string> {
      const callSeed = (seed + askedCount) % 2 ** 31;
      askedCount += 1;
      const request = {
        messages: messages.slice(),
        ...(temperature !== undefined && { temperature }),
        ...(maxTokens !== undefined && { maxTokens }),
        ...(seeded && { seed: callSeed }),
      };
      const reply = await outside(
        `chat ${model.name}`,
        async () => await model.complete(request, { signal }),
      );
      usage = addSpending(usage, spendingOf(reply));
      return readText(reply, { model, repair });
    },
  };
}

function spendingOf({ inputTokenCount, outputTokenCount, costUsd }: ChatReply): UserSpending {
  const cost = costUsd === undefined ? {} : { costUsd };
  return { callCount: 1, inputTokenCount, outputTokenCount, ...cost };
}

function readText(
  { text, finishReason }: ChatReply,
  { model, repair }: { model: ChatModel; repair: UserRepairChoice },
): string {
  if (finishReason === "length" && isRepaired(repair, "cut-line")) {
    throw new RolloutError(
      "user/bad-reply",
      `Cannot use the reply of ${model.name}: it is cut at its token limit, expected a complete line`,
      { retryable: true },
    );
  }
  return isRepaired(repair, "think-block") ? leaveOutThoughts(text) : text;
}
