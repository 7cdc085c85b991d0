import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { describeError } from "../../errors.ts";
import { ClientError } from "../client-error.ts";
import type { RequestedTurn } from "../conversation.ts";
import type { DialectName, Recollection } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { FieldCache } from "./field-cache.ts";
import { RecentBodies } from "./recent-bodies.ts";
import {
  bodyOf,
  changesOf,
  fieldsAround,
  itemOf,
  nextPlan,
  spellings,
  type BodyPlan,
} from "./random-bodies.fixture.ts";
import { decodeText } from "../../text/decode-text.ts";
import { rememberExact } from "../../json/exact-json.ts";

const recollection: Recollection = {
  item: (id) => (id === "known" ? { role: "user", content: "as before" } : undefined),
  conversationOf: () => [{ role: "user", content: "earlier" }],
};

/** The result of reading a body. */
type Outcome = { readonly requested: RequestedTurn } | { readonly refusal: string };

function outcomeOf(read: () => RequestedTurn): Outcome {
  try {
    return { requested: read() };
  } catch (error) {
    if (error instanceof ClientError) return { refusal: error.message };
    throw error;
  }
}

/** Reads a complete body without earlier ones. */
function readWhole(name: DialectName, bytes: Uint8Array): Outcome {
  return outcomeOf(() => {
    let value: unknown;
    try {
      const text = decodeText(bytes);
      value = JSON.parse(text);
      rememberExact(value, text);
    } catch (error) {
      throw new ClientError("invalid", `Cannot read the body: ${describeError(error)}`);
    }
    return dialects[name].decode(value, recollection);
  });
}

function readKnown(bodies: RecentBodies, name: DialectName, bytes: Uint8Array): Outcome {
  const dialect = dialects[name];
  return outcomeOf(() => bodies.read(dialect, bodies.recognise(dialect, bytes), recollection));
}

/** Formats an outcome for comparison, including member order. */
function textOf(outcome: Outcome): string {
  return JSON.stringify(outcome, (key, value: unknown) =>
    // Tools print their source text.
    key === "tools" && Array.isArray(value)
      ? value.map(({ name }: { name: string }) => name)
      : value,
  );
}

describe.each<DialectName>(["chat", "responses", "messages"])(
  "%s: bodies that begin like earlier ones",
  (name) => {
    test("are read as if each were the first", () => {
      const { historyField } = dialects[name];
      fc.assert(
        fc.property(
          fc.record<BodyPlan>({
            items: fc.array(itemOf[name], { maxLength: 8 }),
            before: fieldsAround,
            after: fieldsAround,
            spelling: spellings,
          }),
          fc.array(changesOf(name), { maxLength: 12 }),
          (first, changes) => {
            const bodies = new RecentBodies(new FieldCache());
            const plans = [first];
            for (const change of [undefined, ...changes]) {
              if (change !== undefined) plans.push(nextPlan(plans, change));
              const bytes = bodyOf(plans.at(-1)!, historyField, change);
              expect(textOf(readKnown(bodies, name, bytes))).toBe(textOf(readWhole(name, bytes)));
            }
          },
        ),
        { numRuns: 150 },
      );
    });
  },
);

/** Reads bodies in turn. Returns the number of messages that each shared with an earlier one. */
function sharedCounts(name: DialectName, bodies: readonly (object | string)[]): readonly number[] {
  const known = new RecentBodies(new FieldCache());
  const before = new Set<unknown>();
  return bodies.map((body) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const outcome = readKnown(known, name, Buffer.from(text));
    if ("refusal" in outcome) throw new Error(outcome.refusal);
    const { messages } = outcome.requested;
    const count = messages.filter((message) => before.has(message)).length;
    for (const message of messages) before.add(message);
    return count;
  });
}

const said = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ role: "user", content: `${index}` }));

describe("reading a body", () => {
  test("reads only the items that an earlier body lacks", () => {
    const tools = [{ type: "function", function: { name: "look" } }];
    const body = (count: number) => ({ model: "m", messages: said(count), tools });
    expect(sharedCounts("chat", [body(1), body(3), body(3), body(20)])).toEqual([0, 1, 3, 3]);
  });

  test("reuses an earlier body if later fields change, but not if earlier ones do", () => {
    const body = (model: string, count: number, temperature: number) => {
      return { model, messages: said(count), temperature };
    };
    const bodies = [body("m", 2, 0), body("m", 3, 1), body("n", 4, 1), body("m", 5, 1)];
    expect(sharedCounts("messages", bodies)).toEqual([0, 2, 0, 3]);
  });

  test("continues from one of the last items if the client changes later ones", () => {
    const marked = (count: number, at: number) => {
      const messages = said(count).map((message, index) =>
        index === at ? { ...message, cache_control: { type: "ephemeral" } } : message,
      );
      return { messages };
    };
    const bodies = [marked(10, 9), marked(12, 11), marked(14, 13), marked(16, 2)];
    expect(sharedCounts("messages", bodies)).toEqual([0, 9, 11, 0]);
  });

  test("continues several parallel bodies", () => {
    const body = (model: string, count: number) => ({ model, messages: said(count) });
    const bodies = ["a", "b", "c", "d"].map((model) => body(model, 2));
    const longer = ["a", "b", "c", "d"].map((model) => body(model, 3));
    expect(sharedCounts("chat", [...bodies, ...longer])).toEqual([0, 0, 0, 0, 2, 2, 2, 2]);
    // Of five bodies, the first is evicted.
    expect(sharedCounts("chat", [...bodies, body("e", 2), ...longer])).toEqual([
      0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
  });

  test("continues in the middle of a turn of several items", () => {
    const call = (id: number) => {
      return { type: "function_call", call_id: `${id}`, name: "look", arguments: "{}" };
    };
    const known = new RecentBodies(new FieldCache());
    const read = (items: readonly unknown[]) => {
      const input = [{ role: "user", content: "Hi" }, ...items];
      const outcome = readKnown(known, "responses", Buffer.from(JSON.stringify({ input })));
      return "requested" in outcome ? outcome.requested.messages : outcome;
    };
    const first = read([call(1)]);
    const second = read([call(1), call(2)]);
    expect(first).toMatchObject([{ role: "user" }, { calls: [{ id: "1" }] }]);
    expect(second).toMatchObject([{ role: "user" }, { calls: [{ id: "1" }, { id: "2" }] }]);
    expect((second as readonly unknown[])[0]).toBe((first as readonly unknown[])[0]);
  });

  test.each([
    ["the conversation occurs again after it", '{"messages":[$],"messages":[$]}'],
    ["it comes again under an escaped name", '{"messages":[$],"m\\u0065ssages":[$]}'],
    ["its own name is escaped", '{"m\\u0065ssages":[$]}'],
  ])("is complete if %s", (_, pattern) => {
    const spelled = (count: number) =>
      pattern.replaceAll(
        "$",
        said(count)
          .map((item) => JSON.stringify(item))
          .join(","),
      );
    expect(sharedCounts("chat", [spelled(1), spelled(2)])).toEqual([0, 0]);
  });

  test("is complete if the earlier body was forgotten or not kept", () => {
    const known = new RecentBodies(new FieldCache());
    const bytes = (count: number) => Buffer.from(JSON.stringify({ messages: said(count) }));
    const read = (count: number, keeps?: boolean) => {
      const found = known.recognise(dialects.chat, bytes(count));
      const { messages } = known.read(dialects.chat, found, recollection, { keeps });
      return { hash: found.hash, first: messages[0] };
    };
    const passing = read(1, false);
    const first = read(2);
    expect(first.first).not.toBe(passing.first);
    expect(read(3, false).first).toBe(first.first);
    expect(read(3).first).toBe(first.first);
    known.forget(first.hash);
    const second = read(4);
    expect(second.first).toBe(first.first);
    known.forget(second.hash);
    expect(read(5).first).not.toBe(first.first);
  });

  test("reuses an earlier body if the field's name also occurs in another place", () => {
    const spelled = (count: number) =>
      JSON.stringify({ metadata: { messages: "[" }, messages: said(count), x: { messages: [1] } });
    expect(sharedCounts("chat", [spelled(2), spelled(3)])).toEqual([0, 2]);
  });
});

test("a body that continues an earlier one is refused for its prefilled turn, like a single body", () => {
  const bodies = new RecentBodies(new FieldCache());
  const body = (...more: readonly object[]) =>
    Buffer.from(JSON.stringify({ messages: [{ role: "user", content: "Hi" }, ...more] }));
  readKnown(bodies, "chat", body());
  const prefilled = body({ role: "assistant", content: "{", prefix: true });
  const outcome = readKnown(bodies, "chat", prefilled);
  expect(outcome).toEqual(readWhole("chat", prefilled));
  expect(outcome).toMatchObject({ refusal: expect.stringContaining("messages[1].prefix: ") });
});

test("a body that ends within an earlier one is refused for its prefilled turn", () => {
  const bodies = new RecentBodies(new FieldCache());
  const items = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "{", prefix: true },
    { role: "user", content: "Go on." },
  ];
  const body = (count: number) => Buffer.from(JSON.stringify({ messages: items.slice(0, count) }));
  expect(readKnown(bodies, "chat", body(3))).toHaveProperty("requested");
  const outcome = readKnown(bodies, "chat", body(2));
  expect(outcome).toEqual(readWhole("chat", body(2)));
  expect(outcome).toMatchObject({ refusal: expect.stringContaining("messages[1].prefix: ") });
});
