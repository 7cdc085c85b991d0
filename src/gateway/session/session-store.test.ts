import { expect, test } from "vitest";
import { ClientError } from "../client-error.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { defaultIgnore } from "../tree/message-keys.ts";
import { defaultSessionLimits } from "./session-limits.ts";
import { hashToken } from "./session-keys.ts";
import { SessionStore } from "./session-store.ts";

test("SessionStore knows the newest sessions that are over, and a bounded number of them", () => {
  const store = new SessionStore({
    rules: { ignore: defaultIgnore, strictness: "calls" },
    limits: defaultSessionLimits,
    ...{ clock: { now: () => 0 }, now: () => 0 },
  });
  for (let count = 0; count <= 100_000; count++) {
    store.restoreFinished({
      ...{ sessionId: `s${count}`, tokenHash: hashToken(`token ${count}`), taskId: "t" },
      ...{ taskIndex: 0, groupId: "t", sampleIndex: count, seed: 0, metadata: {}, openedAtMs: 0 },
    });
  }
  expect(store.byToken("token 0")).toBe(undefined);
  expect(() => store.byToken("token 1")).toThrow(ClientError);
  expect(() => store.byToken("token 100000")).toThrow("This session is finished");
  expect(() => store.requireById("s0")).toThrow("There is no open session of this id");
  expect(() => store.requireById("s1")).toThrow("This session is finished");
});

test("SessionStore gives no task's name or index again, whichever sessions are not known any more", () => {
  const store = new SessionStore({
    rules: { ignore: defaultIgnore, strictness: "calls" },
    limits: defaultSessionLimits,
    ...{ clock: { now: () => 0 }, now: () => 0 },
  });
  // Nothing is known of the one between them.
  for (const taskIndex of [0, 2]) {
    store.restoreWritten({ taskId: `session-${taskIndex}`, taskIndex, sampleIndex: 0 });
  }
  const places = [{}, { taskId: "session-0" }].map((wish) => {
    const { taskId, taskIndex, sampleIndex } = store.create(wish).session.identity;
    return { taskId, taskIndex, sampleIndex };
  });
  expect(places).toEqual([
    { taskId: "session-3", taskIndex: 3, sampleIndex: 0 },
    { taskId: "session-0", taskIndex: 0, sampleIndex: 1 },
  ]);
});

test("sessions read their tools as their own dialect has them, whatever others made of the same text", () => {
  const store = new SessionStore({
    rules: { ignore: defaultIgnore, strictness: "calls" },
    limits: defaultSessionLimits,
    ...{ clock: { now: () => 0 }, now: () => 0 },
  });
  const namesOf = (name: DialectName, body: string): readonly string[] => {
    const { bodies, memory } = store.create({}).session;
    const found = bodies.recognise(dialects[name], Buffer.from(body));
    return bodies.read(dialects[name], found, memory).tools.map((tool) => tool.name);
  };
  const ofChat = '{"type":"function","function":{"name":"look"}}';
  const ofResponses = '{"type":"function","name":"look","parameters":{"type":"object"}}';
  const said = '[{"role":"user","content":"Hi"}]';
  // A client that asks at another dialect's place has tools there that are none.
  for (const [name, field, tool] of [
    ["chat", "messages", ofChat],
    ["responses", "input", ofResponses],
  ] as const) {
    const body = (own: string, space: string): string =>
      `{"tools":[${tool}],${space}"${own}":${said}}`;
    expect(namesOf("messages", body("messages", ""))).toEqual([]);
    expect(namesOf(name, body(field, ""))).toEqual(["look"]);
    expect(namesOf(name, body(field, " "))).toEqual(["look"]);
    expect(namesOf("messages", body("messages", " "))).toEqual([]);
  }
});
