import { appendToList } from "../../../../packages/python-values/src/support/append-to-list.ts";
import { describeStack, UsageError } from "../../../errors.ts";
import { LiveDoctor, type LiveDoctorSetup } from "../live-doctor.ts";
import type { DoctorReply, DoctorRequest } from "./doctor-message.ts";

/** The port through which a thread communicates: a `MessagePort`. */
interface ThreadPort {
  on(event: "message", listener: (request: DoctorRequest) => void): unknown;
  postMessage(message: DoctorReply): void;
}

/** Serves calls one after the other. */
export function serveDoctor(port: ThreadPort, setup: LiveDoctorSetup): void {
  const doctor = new LiveDoctor(setup);
  const posts = new Map<number, Uint8Array[]>();
  let working: Promise<void> = Promise.resolve();

  function answer(key: number, work: () => Promise<(DoctorReply & { type: "done" })["result"]>) {
    working = working.then(async () => {
      try {
        port.postMessage({ type: "done", key, result: await work() });
      } catch (error) {
        const isRefused = error instanceof UsageError;
        const message = isRefused ? error.message : describeStack(error);
        port.postMessage({ type: isRefused ? "refused" : "failed", key, message });
      }
    });
  }

  port.on("message", (request) => {
    const { key } = request;
    switch (request.type) {
      case "bytes":
        appendToList(posts, key, request.bytes);
        break;
      case "drop":
        posts.delete(key);
        break;
      case "add": {
        const chunks = posts.get(key) ?? [];
        posts.delete(key);
        answer(key, async () => await doctor.add(oneByOne(chunks)));
        break;
      }
      case "diagnose": {
        const { options } = request;
        answer(key, async () => await Promise.resolve().then(() => doctor.diagnose(options)));
        break;
      }
    }
  });
}

/** Yields the chunks, and lets go of each. */
async function* oneByOne(chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const [index, chunk] of chunks.entries()) {
    yield await Promise.resolve(chunk);
    chunks[index] = new Uint8Array();
  }
}
