import { expect, test } from "vitest";
import type { DoctorRequest } from "../../doctor/live/thread/doctor-message.ts";
import type { DoctorListeners } from "../../doctor/live/thread/start-doctor.ts";
import { ServiceDoctor } from "./service-doctor.ts";

/** A doctor with threads that keep their messages and do not answer. */
function quietDoctor() {
  const threads: { readonly posted: DoctorRequest[]; readonly listeners: DoctorListeners }[] = [];
  const doctor = new ServiceDoctor({ runs: "runs", tokenLimit: 100 }, (_setup, listeners) => {
    const thread = { posted: [] as DoctorRequest[], listeners };
    threads.push(thread);
    return { post: (request) => void thread.posted.push(request), close: async () => {} };
  });
  return { doctor, threads };
}

async function* bytes(...texts: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield await Promise.resolve(Buffer.from(text));
}

const added = { rows: 1, trainedTokens: 2 };

test("bytes travel to the thread in blocks as they arrive, each with a buffer of its own", async () => {
  const { doctor, threads } = quietDoctor();
  const block = "b".repeat(65_536);
  const result = doctor.add(bytes("a", block, "c", "d"));
  await expect.poll(() => threads[0]?.posted.length).toBe(3);
  const texts = threads[0]!.posted.map((request) => {
    if (request.type !== "bytes") return request.type;
    expect(request.bytes.buffer.byteLength).toBe(request.bytes.byteLength);
    return Buffer.from(request.bytes).toString();
  });
  expect(texts).toEqual([`a${block}`, "cd", "add"]);
  threads[0]!.listeners.onReply({ type: "done", key: 1, result: added });
  await expect(result).resolves.toEqual(added);
});

test("a post that breaks off is dropped", async () => {
  const { doctor, threads } = quietDoctor();
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(Buffer.from("a"));
    throw new Error("the reader left");
  }
  await expect(doctor.add(broken())).rejects.toThrow("the reader left");
  expect(threads[0]!.posted.at(-1)).toEqual({ type: "drop", key: 1 });
});

test("a thread that ends fails its calls, and the next call starts another one", async () => {
  const { doctor, threads } = quietDoctor();
  const waiting = doctor.diagnose();
  // A diagnosis keeps no columns on the disk.
  expect(doctor.hasPosts).toBe(false);
  async function* during(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(Buffer.from("a"));
    threads[0]!.listeners.onLost(new Error("out of memory"));
  }
  const post = doctor.add(during());
  const message = "The doctor has ended, and its rows are lost: ";
  await expect(waiting).rejects.toMatchObject({
    code: "internal",
    message: `${message}out of memory; post fewer rows at once`,
  });
  await expect(post).rejects.toThrow(`${message}it ended while the post was received`);
  expect(doctor.hasPosts).toBe(true);
  const next = doctor.diagnose();
  await expect.poll(() => threads.length).toBe(2);
  // An error, and then the exit.
  threads[0]!.listeners.onLost(new Error("the thread ended with status 1"));
  threads[1]!.listeners.onReply({ type: "failed", key: 3, message: "Error: m" });
  await expect(next).rejects.toThrow("the doctor failed: Error: m");
});

test("too many posts and diagnoses are refused, and a stopping service answers its callers", async () => {
  const { doctor } = quietDoctor();
  const posts = Array.from({ length: 4 }, async () => await doctor.add(bytes("a")));
  await expect(doctor.add(bytes("a"))).rejects.toMatchObject({
    code: "queue-full",
    message: "4 posts of logprobs are being compared, at most 4 may be",
  });
  const diagnoses = Array.from({ length: 16 }, async () => await doctor.diagnose());
  await expect(doctor.diagnose()).rejects.toMatchObject({
    code: "queue-full",
    message: "16 diagnoses are being made, at most 16 may be",
  });
  const ended = Promise.allSettled([...posts, ...diagnoses]);
  await doctor[Symbol.asyncDispose]();
  for (const one of await ended) expect(one).toMatchObject({ reason: { code: "stopping" } });
  await expect(doctor.diagnose()).rejects.toMatchObject({ code: "stopping" });
});
