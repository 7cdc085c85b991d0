import { withResolvers } from "../async/with-resolvers.ts";
import { ServiceError } from "./service-error.ts";
import type { ServiceEntry, ServiceJournal } from "./service-journal.ts";

/** What a service writes down; what the disk refuses ends it, as it could promise nothing any more. */
export class ServiceMemory {
  /** Rejects where the service cannot go on, such as on a full disk. Never resolves. */
  readonly failed: Promise<never>;
  readonly journal: ServiceJournal;
  readonly #fail: (reason: unknown) => void;

  constructor(journal: ServiceJournal) {
    this.journal = journal;
    const { promise, reject } = withResolvers<never>();
    this.failed = promise;
    this.#fail = reject;
    // Whoever awaits it is told.
    promise.catch(() => {});
  }

  /** Resolves once the entry is on the disk. */
  async append(entry: ServiceEntry): Promise<void> {
    await this.orFail(this.journal.append(entry));
  }

  /** The result of work whose failure ends the service, refusals apart. */
  async orFail<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof ServiceError)) this.#fail(error);
      throw error;
    }
  }
}
