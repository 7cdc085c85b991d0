import { UsageError } from "../errors.ts";

/** The release of transformers to reproduce by default. */
export const defaultTransformersVersion = "5.23";

/** The first release that copies a message's reasoning from one field name to others. */
const copyingSince = [5, 21] as const;

/**
 * True if that release of transformers shows a message's reasoning under several names.
 *
 * @param version - Such as `5.20` or `4.57.1`.
 * @throws UsageError if it is not a version.
 */
export function copiesReasoning(version: string): boolean {
  const [, major, minor] = /^(\d+)\.(\d+)(?:\.\w+)*$/.exec(version) ?? [];
  if (major === undefined || minor === undefined) {
    throw new UsageError(
      `Cannot render as transformers ${version}: expected a release such as ` +
        defaultTransformersVersion,
    );
  }
  const [sinceMajor, sinceMinor] = copyingSince;
  return (
    Number(major) > sinceMajor || (Number(major) === sinceMajor && Number(minor) >= sinceMinor)
  );
}
