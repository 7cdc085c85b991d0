import { preparedEngine } from "../../src/episode/lamp-episode.fixture.ts";
import { createGateway, inProcessUrl } from "../../src/gateway/create-gateway.ts";
import type { Renderer } from "../../src/renderer/renderer.ts";
import { characterIds, createCharacterRenderer } from "../../src/testing/character-renderer.ts";

/** One answer of a gateway. */
export interface Answer {
  readonly status: number;
  readonly body: {
    readonly id: string;
    readonly error?: { readonly message: string };
    readonly output: readonly object[];
    readonly choices: readonly [
      { readonly message: { readonly tool_calls: readonly { readonly id: string }[] } },
    ];
  };
}

/** A gateway whose policy samples the given texts, and the prompts of its turns. */
export async function openTestGateway(
  texts: readonly string[],
  options: { readonly parser?: string; readonly renderer?: Renderer } = {},
) {
  const { renderer: base = createCharacterRenderer(), parser = "qwen25" } = options;
  const renderer = { ...base, card: { ...base.card, parser } };
  const engine = preparedEngine(texts.map((text) => ({ outputIds: characterIds(text) })));
  const gateway = await createGateway({ engine, renderer });
  const { token, sessionId } = await gateway.openSession({ taskId: "t" });
  const ask = async (path: string, body: object, headers: object = {}): Promise<Answer> => {
    const response = await gateway.fetch(`${inProcessUrl}/v1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, ...headers },
      body: JSON.stringify({ model: "policy", ...body }),
    });
    return { status: response.status, body: (await response.json()) as Answer["body"] };
  };
  return {
    chat: async (body: object, headers?: object) => await ask("/chat/completions", body, headers),
    responses: async (body: object) => await ask("/responses", body),
    messages: async (body: object) => await ask("/messages", { max_tokens: 100, ...body }),
    counts: () => gateway.counts,
    /** The prompts, with the marks of the character renderer left out. */
    prompts: async () =>
      await Promise.all(
        engine.requests.map(async ({ promptIds }) => {
          const text = await renderer.codec.decode([...promptIds]);
          return text.replaceAll("<|open|>", "").replaceAll("<|stop|>", "\n");
        }),
      ),
    async end() {
      await gateway.reward(sessionId, { reward: 1 });
      return await gateway.finish(sessionId);
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}
