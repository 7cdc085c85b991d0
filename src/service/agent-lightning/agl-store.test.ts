import { expect, test } from "vitest";
import { answeringServer } from "../../engine/answering-server.fixture.ts";
import { AglStore } from "./agl-store.ts";

const key = "agl-secret-key-0123456789";
const { signal } = new AbortController();

test.each([
  ["as an answer", `unknown key Bearer ${key}`, '"unknown key Bearer [redacted]"'],
  ["astride where the answer is cut", "x".repeat(190) + key, `"${"x".repeat(190)}[redacted`],
])("no error contains the store's key if the server repeats it %s", async (_how, said, shown) => {
  await using server = await answeringServer(() => ({ status: 401, body: said }));
  const store = new AglStore({ url: server.url, key, attempt: "tw" });
  await expect(store.queued(2, signal)).rejects.toMatchObject({
    status: 401,
    message: `GET /api/rollouts?state_in=queuing&limit=2 answered 401: ${shown}`,
  });
});

test("a rollout's id is not changed if it contains the key", async () => {
  const rollout = { rollout_id: `${key}-1`, input: {}, is_train: true, config: {} };
  await using server = await answeringServer(() => ({ body: [rollout] }));
  const store = new AglStore({ url: server.url, key, attempt: "tw" });
  expect(await store.queued(2, signal)).toEqual([rollout]);
});
