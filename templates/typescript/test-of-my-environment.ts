import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { rollout, verifySample } from "turnwright";
import {
  createCharacterRenderer,
  createTextPolicy,
  startSglangTestServer,
  type TestServer,
} from "turnwright/testing";
import environment from "./my-environment.ts";

/** A renderer without a model: each character is a token. Nothing is downloaded. */
const renderer = createCharacterRenderer();

/** The turns of the scripted policy: the first attempt does the work, the second does not. */
const turns: Readonly<Record<string, readonly string[]>> = {
  "my-environment/test/0#0": [call("set_lamp", { room: "kitchen", level: 5 }), "The lamp is at 5."],
  "my-environment/test/0#1": [call("set_lamp", { room: "cellar", level: 5 }), "Sorry."],
};

let server: TestServer;
before(async () => {
  const policy = await createTextPolicy((rolloutId) => turns[rolloutId] ?? [], { renderer });
  server = await startSglangTestServer({ policy });
});
after(() => server.close());

test("sets the kitchen's lamp, and gives no reward for a wrong room", async () => {
  const rewards: Record<string, number | undefined> = {};
  const options = { environment, renderer, url: server.url, split: "test", tasks: "0", samples: 2 };
  for await (const { episodes } of rollout(options)) {
    for (const { rolloutId, reward, samples } of episodes) {
      rewards[rolloutId] = reward;
      // The ids, logprobs, mask and reward of each row agree.
      for (const sample of samples) assert.deepEqual(verifySample(sample), []);
    }
  }
  assert.deepEqual(rewards, { "my-environment/test/0#0": 1, "my-environment/test/0#1": 0 });
});

/** A call as Qwen 2.5 writes it. */
function call(name: string, given: object): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: given })}\n</tool_call>`;
}
