import type { LanguageModel } from "ai";
import type { ChatUsage } from "./chat-budget.ts";
import type { ChatFinishReason, ChatMessage, ChatRequest } from "./chat-model.ts";

/** A model of the AI SDK, as its providers make them. */
export type AiSdkLanguageModel = Exclude<LanguageModel, string>;

/** What an AI SDK model answered, in our words. */
export interface LanguageModelAnswer {
  /** The text parts joined; reasoning and tool calls are left out. */
  readonly text: string;
  readonly finishReason: ChatFinishReason;
  /** `null` where the server reports none. */
  readonly usage: ChatUsage | null;
}

/**
 * Calls an AI SDK model once, past the SDK's own loop, retries and telemetry.
 *
 * @throws whatever the model throws; see `classifyChatError()`.
 */
export async function callLanguageModel(
  model: AiSdkLanguageModel,
  request: ChatRequest,
  { signal }: { signal: AbortSignal },
): Promise<LanguageModelAnswer> {
  const { messages, temperature, maxTokens, seed } = request;
  const result = await model.doGenerate({
    prompt: messages.map(toPromptMessage),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(seed === undefined ? {} : { seed }),
    abortSignal: signal,
  });
  return {
    text: result.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(""),
    finishReason: toFinishReason(result.finishReason),
    usage: toUsage(result.usage),
  };
}

/** What versions 2 and 3 of the model interface have in common. */
type PromptMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: { type: "text"; text: string }[] }
  | { role: "assistant"; content: { type: "text"; text: string }[] };

function toPromptMessage({ role, content }: ChatMessage): PromptMessage {
  if (role === "system") return { role, content };
  return { role, content: [{ type: "text", text: content }] };
}

/** Version 2 models give a word, version 3 models a word with the server's own beside it. */
function toFinishReason(reason: string | { readonly unified: string }): ChatFinishReason {
  const word = typeof reason === "string" ? reason : reason.unified;
  return word === "stop" || word === "length" || word === "content-filter" ? word : "other";
}

type TokenCount = number | undefined;

interface ReportedUsage {
  readonly inputTokens: TokenCount | { readonly total: TokenCount; readonly cacheRead: TokenCount };
  readonly outputTokens: TokenCount | { readonly total: TokenCount };
  readonly cachedInputTokens?: TokenCount;
}

/** Version 2 models give bare counts, version 3 models a breakdown. */
function toUsage({
  inputTokens,
  outputTokens,
  cachedInputTokens,
}: ReportedUsage): ChatUsage | null {
  const input = typeof inputTokens === "object" ? inputTokens.total : inputTokens;
  const cached = typeof inputTokens === "object" ? inputTokens.cacheRead : cachedInputTokens;
  const output = typeof outputTokens === "object" ? outputTokens.total : outputTokens;
  if (input === undefined && output === undefined) return null;
  return {
    inputTokenCount: input ?? 0,
    cachedInputTokenCount: cached ?? 0,
    outputTokenCount: output ?? 0,
  };
}
