import type { Message } from "../../message.ts";
import { createRenderer } from "../../renderer/create-renderer.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import type { PolicyRequest, ServerPolicy } from "./server-policy.ts";
import { locateTurn, restOfTurn } from "./session-script-policy.ts";

/**
 * The texts to sample, turn by turn, without the end-of-turn token: the same for every episode, or
 * by rollout id, such as `lamps/test/3#0`. The id is empty if the server receives none.
 */
export type TextTurns = readonly string[] | ((rolloutId: string) => readonly string[]);

/** Settings of `createTextPolicy()`. */
export interface TextPolicyOptions {
  /** The renderer of the episodes, such as `createCharacterRenderer()`. Default: that of the model in `modelDir`. */
  readonly renderer?: Renderer;
  /** The model's folder, used if there is no `renderer`. Default: the working directory. */
  readonly modelDir?: string;
  /** The text after the last turn. Default `Goodbye!`. */
  readonly otherwise?: string;
}

/**
 * Creates a policy for the test servers that samples given texts. Reads the number of the requested
 * turn from the prompt, so an episode that is played again starts from its beginning.
 * @throws UsageError if a model's folder cannot be read.
 */
export async function createTextPolicy(
  turns: TextTurns,
  { otherwise = "Goodbye!", modelDir = ".", renderer: given }: TextPolicyOptions,
): Promise<ServerPolicy> {
  const renderer = given ?? (await createRenderer({ modelDir }));
  const marker = await findTurnMarker(renderer);
  const [stopId] = renderer.stopTokenIds;
  const close = stopId === undefined ? [] : [stopId];
  const idsOf = async (text: string) => [...(await renderer.codec.encode(text)), ...close];
  return {
    name: "text",
    async begin({ inputIds, routingKey = "" }: PolicyRequest) {
      const { turnIndex, sampledIds } = locateTurn(inputIds, marker);
      const texts = typeof turns === "function" ? turns(routingKey) : turns;
      const ids = await idsOf(texts[turnIndex] ?? otherwise);
      const rest = restOfTurn(ids, sampledIds);
      if (rest !== undefined) return rest;
      throw new Error(
        `Cannot play turn ${turnIndex} of ${routingKey}: the prompt ends with other ids than the text's`,
      );
    },
  };
}

/** Returns the ids that start an assistant turn and occur at no other place. */
async function findTurnMarker(renderer: Renderer): Promise<readonly number[]> {
  const render = async (content: string, addGenerationPrompt: boolean) => {
    const messages: Message[] = [{ role: "user", content }];
    return (await renderer.prompt({ messages, tools: [], addGenerationPrompt })).ids;
  };
  const [first, second] = [await render("x", true), await render("y", true)];
  const without = await render("x", false);
  if (without.length < first.length) return first.slice(without.length);
  let length = 0;
  while (length < first.length && first.at(-1 - length) === second.at(-1 - length)) length += 1;
  return first.slice(first.length - length);
}
