import { withResolvers } from "../async/with-resolvers.ts";
import { ServiceError } from "./service-error.ts";
import type { ServiceEntry, ServiceJournal } from "./service-journal.ts";

/**
 * Writes the service's journal. A disk error ends the service, because an answer that is not in the journal would be
 * lost at a restart.
 */
export class ServiceMemory {
  /**
   * Rejects if the service cannot continue, for example because the disk is full. Never resolves.
   */
  readonly failed: Promise<never>;
  readonly journal: ServiceJournal;
  readonly #fail: (reason: unknown) => void;

  constructor(journal: ServiceJournal) {
    this.journal = journal;
    const { promise, reject } = withResolvers<never>();
    this.failed = promise;
    this.#fail = reject;
    // Callers await this promise. The handler only prevents an unhandled rejection.
    promise.catch(() => {});
  }

  /** Resolves once the entry is on the disk. */
  async append(entry: ServiceEntry): Promise<void> {
    await this.orFail(this.journal.append(entry));
  }

  /** Awaits work. If it fails, the service ends, unless the error refuses a call. */
  async orFail<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof ServiceError)) this.#fail(error);
      throw error;
    }
  }
}
