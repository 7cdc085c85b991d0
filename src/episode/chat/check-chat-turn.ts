import { z } from "zod";
import type { ChatTurn } from "../../engine/chat/chat-turn.ts";
import { RolloutError } from "../../errors.ts";
import { whyNotJson } from "../../json/why-not-json.ts";
import { plainCopy } from "../../values/plain-copy.ts";

const count = z.int().min(0);
const members = z.record(z.string(), z.unknown()).optional();

const shape = z.object({
  content: z.string(),
  reasoning: z.string().optional(),
  toolCalls: z.array(
    z.object({
      id: z.string().optional(),
      name: z.string().optional(),
      argumentsText: z.string(),
      members,
    }),
  ),
  finish: z.enum(["stop", "length"]),
  usage: z
    .object({
      promptTokenCount: count,
      cachedTokenCount: count.optional(),
      sampledTokenCount: count,
    })
    .optional(),
  model: z.string().optional(),
  members,
});

/**
 * Checks an engine's turn, and returns a copy.
 *
 * @throws RolloutError `engine/bad-reply` that names the member.
 */
export function checkChatTurn(value: unknown, what: string): ChatTurn {
  const why = whyNotJson(value);
  const issue = why === undefined ? shape.safeParse(value).error?.issues[0] : undefined;
  const problem = why ?? (issue && `${issue.path.join(".")}: ${issue.message}`);
  if (problem === undefined) return plainCopy(value) as ChatTurn;
  const message = `Cannot ${what}: the engine returned no turn (${problem}), expected a ChatTurn`;
  throw new RolloutError("engine/bad-reply", message, { retryable: true });
}
