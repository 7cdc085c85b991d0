import { expect, test } from "vitest";
import { GatewayCounters } from "../../episode/gateway-counters.ts";
import { ClientError } from "../client-error.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { defaultIgnore } from "../tree/message-keys.ts";
import { defaultSessionLimits } from "./session-limits.ts";
import { hashToken } from "./session-keys.ts";
import { SessionStore } from "./session-store.ts";

test("SessionStore remembers a bounded number of finished sessions", () => {
  const store = new SessionStore({
    counters: new GatewayCounters(),
    rules: { ignore: defaultIgnore, strictness: "calls" },
    limits: defaultSessionLimits,
    clock: { now: () => 0 },
    now: () => 0,
  });
  for (let count = 0; count <= 100_000; count++) {
    store.restoreFinished({
      sessionId: `s${count}`,
      tokenHash: hashToken(`token ${count}`),
      taskId: "t",
      taskIndex: 0,
      groupId: "t",
      sampleIndex: count,
      seed: 0,
      metadata: {},
      openedAtMs: 0,
    });
  }
  expect(store.byToken("token 0")).toBe(undefined);
  expect(() => store.byToken("token 1")).toThrow(ClientError);
  expect(() => store.byToken("token 100000")).toThrow("This session is finished");
  expect(() => store.requireById("s0")).toThrow("No open session has this id");
  expect(() => store.requireById("s1")).toThrow("This session is finished");
});

test("SessionStore never reuses a task's name or index, even of forgotten sessions", () => {
  const store = new SessionStore({
    counters: new GatewayCounters(),
    rules: { ignore: defaultIgnore, strictness: "calls" },
    limits: defaultSessionLimits,
    clock: { now: () => 0 },
    now: () => 0,
  });
  // Index 1 is unknown.
  for (const taskIndex of [0, 2]) {
    store.restoreWritten({ taskId: `session-${taskIndex}`, taskIndex, sampleIndex: 0 });
  }
  const places = [{}, { taskId: "session-0" }].map((request) => {
    const { taskId, taskIndex, sampleIndex } = store.create(request).session.identity;
    return { taskId, taskIndex, sampleIndex };
  });
  expect(places).toEqual([
    { taskId: "session-3", taskIndex: 3, sampleIndex: 0 },
    { taskId: "session-0", taskIndex: 0, sampleIndex: 1 },
  ]);
});

test("sessions read tools by their own dialect, even if another read the same text", () => {
  const store = new SessionStore({
    counters: new GatewayCounters(),
    rules: { ignore: defaultIgnore, strictness: "calls" },
    limits: defaultSessionLimits,
    clock: { now: () => 0 },
    now: () => 0,
  });
  const formsOf = (name: DialectName, body: string): readonly unknown[] => {
    const { bodies, memory } = store.create({}).session;
    const found = bodies.recognise(dialects[name], Buffer.from(body));
    const { tools, callForms } = bodies.read(dialects[name], found, memory);
    return tools.map((tool) => [tool.name, callForms.get(tool.name)]);
  };
  // In Responses the tool takes text; in Messages it is a tool without parameters.
  const body = (own: string, space: string): string =>
    `{"tools":[{"type":"custom","name":"look"}],${space}"${own}":[{"role":"user","content":"Hi"}]}`;
  for (const space of ["", " "]) {
    expect(formsOf("messages", body("messages", space))).toEqual([["look", undefined]]);
    expect(formsOf("responses", body("input", space))).toEqual([["look", "custom"]]);
  }
});
