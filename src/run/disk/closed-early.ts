import { UsageError } from "../../errors.ts";

/** Returns the error for writing to a folder that was closed. */
export function closedEarly(dir: string): UsageError {
  return new UsageError(
    `Cannot continue writing ${dir}: it was closed while its run plays; end the run, such as by interrupt(), and ` +
      "wait for its result before its folder is closed",
  );
}
