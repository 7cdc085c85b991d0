import type {
  AddedRows,
  LiveDiagnoseOptions,
  LiveDiagnosis,
  LiveDoctorSetup,
} from "../../doctor/live/live-doctor.ts";
import type { DoctorReply, DoctorRequest } from "../../doctor/live/thread/doctor-message.ts";
import type { DoctorThread, StartDoctor } from "../../doctor/live/thread/start-doctor.ts";
import { InvariantError } from "../../errors.ts";
import { ServiceError } from "../service-error.ts";

/** The default number of trained tokens, of the newest rows, in a diagnosis. */
export const defaultDoctorTokens = 262_144;

/** The default number of bytes of acknowledged side columns that are kept for the comparison of routes. */
export const defaultDoctorBytes = 2 * 2 ** 30;

/** Maximum number of posts that are received or compared at the same time. */
const mostPosts = 4;

/** Maximum number of diagnoses that wait. */
const mostDiagnoses = 16;

/** The size of a block that is sent to the thread, in bytes. Only the last block of a post is smaller. */
const blockSize = 64 * 1024;

interface PendingCall {
  readonly resolve: (result: AddedRows | LiveDiagnosis) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The mismatch doctor of a service. A thread of its own compares and diagnoses, so that no group waits for it. It starts
 * with the first call. Its rows are in memory only.
 */
export class ServiceDoctor implements AsyncDisposable {
  readonly #setup: LiveDoctorSetup;
  readonly #start: StartDoctor;
  readonly #pending = new Map<number, PendingCall>();
  #thread: DoctorThread | undefined;
  #lastKey = 0;
  #postCount = 0;
  #diagnosisCount = 0;
  #hasPosts = false;
  #isClosed = false;

  constructor(setup: LiveDoctorSetup, start: StartDoctor) {
    this.#setup = setup;
    this.#start = start;
  }

  /** True if a post came since the start, also if the thread has ended since. */
  get hasPosts(): boolean {
    return this.#hasPosts;
  }

  /**
   * Compares the trainer's logprobs in one post with the engine's. If one line is invalid, no row of the post counts.
   *
   * @param chunks - The post's body: JSON lines. The caller limits its size.
   * @throws ServiceError `bad-request` that names the line and the fault, `queue-full`, or `internal` if the thread ended.
   */
  async add(chunks: AsyncIterable<Uint8Array>): Promise<AddedRows> {
    if (this.#postCount >= mostPosts) {
      const message = `${this.#postCount} posts of logprobs are being compared, at most ${mostPosts} may be`;
      throw new ServiceError("queue-full", message);
    }
    this.#postCount += 1;
    try {
      const thread = this.#running();
      this.#hasPosts = true;
      const key = this.#nextKey();
      try {
        for await (const bytes of inBlocks(chunks)) thread.post({ type: "bytes", key, bytes });
      } catch (error) {
        thread.post({ type: "drop", key });
        throw error;
      }
      return (await this.#call(thread, { type: "add", key })) as AddedRows;
    } finally {
      this.#postCount -= 1;
    }
  }

  /**
   * Returns the diagnosis of the newest rows.
   *
   * @throws ServiceError `queue-full`, or `internal` if the thread ended.
   */
  async diagnose(options: LiveDiagnoseOptions = {}): Promise<LiveDiagnosis> {
    if (this.#diagnosisCount >= mostDiagnoses) {
      const message = `${this.#diagnosisCount} diagnoses are being made, at most ${mostDiagnoses} may be`;
      throw new ServiceError("queue-full", message);
    }
    this.#diagnosisCount += 1;
    try {
      const thread = this.#running();
      const call = { type: "diagnose", key: this.#nextKey(), options } as const;
      return (await this.#call(thread, call)) as LiveDiagnosis;
    } finally {
      this.#diagnosisCount -= 1;
    }
  }

  #running(): DoctorThread {
    if (this.#isClosed) throw new ServiceError("stopping", "The service is stopping");
    if (this.#thread !== undefined) return this.#thread;
    const thread = this.#start(this.#setup, {
      onReply: (reply) => this.#settle(reply),
      onLost: (cause) => {
        // A thread may report its end twice. The calls of the next one go on.
        if (this.#thread === thread) this.#lose(lost(cause));
      },
    });
    this.#thread = thread;
    return thread;
  }

  #nextKey(): number {
    this.#lastKey += 1;
    return this.#lastKey;
  }

  async #call(thread: DoctorThread, request: DoctorRequest): Promise<AddedRows | LiveDiagnosis> {
    // It may have ended while the post was received.
    if (this.#thread !== thread) throw lost(new Error("it ended while the post was received"));
    return await new Promise((resolve, reject) => {
      this.#pending.set(request.key, { resolve, reject });
      thread.post(request);
    });
  }

  #settle(reply: DoctorReply): void {
    const call = this.#pending.get(reply.key);
    this.#pending.delete(reply.key);
    if (reply.type === "done") call?.resolve(reply.result);
    else if (reply.type === "refused") {
      call?.reject(
        new ServiceError("bad-request", `Cannot compare the logprobs: ${reply.message}`),
      );
    } else call?.reject(new InvariantError(`the doctor failed: ${reply.message}`));
  }

  /** Forgets a thread that has ended, with its rows. The next call starts another one. */
  #lose(error: Error): void {
    this.#thread = undefined;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#thread?.close();
    this.#lose(new ServiceError("stopping", "The service is stopping"));
  }
}

/**
 * Joins chunks to blocks. Each message to the thread has a cost, and a small chunk would keep the complete buffer that
 * it is a part of.
 */
async function* inBlocks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const join = (): Uint8Array => {
    const block = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      block.set(part, at);
      at += part.length;
    }
    [parts, size] = [[], 0];
    return block;
  };
  for await (const chunk of chunks) {
    parts.push(chunk);
    size += chunk.length;
    if (size >= blockSize) yield join();
  }
  if (size > 0) yield join();
}

function lost(cause: Error): ServiceError {
  const message = `The doctor has ended, and its rows are lost: ${cause.message}; post fewer rows at once`;
  return new ServiceError("internal", message, { cause });
}
