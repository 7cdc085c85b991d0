import { isDeepStrictEqual } from "node:util";
import { UsageError } from "../../errors.ts";
import { continuesPlan, listsTasks, tasksMember } from "../schedule/grown-plan.ts";
import { contextMember, type RunManifest } from "./run-manifest.ts";

/**
 * Members of `identity` that an engine may not report at each start. A missing value does not count as a difference.
 */
const reportedByEngine: ReadonlySet<string> = new Set([
  contextMember,
  "logprobConvention",
  "weightsFile",
  "servedModel",
]);

/**
 * Checks that a start plays the same run as earlier starts.
 *
 * @throws UsageError that names the differences.
 */
export function requireSameRun(name: string, stored: RunManifest, manifest: RunManifest): void {
  const configured = configurationDifferences(stored, manifest);
  if (configured.length > 0) {
    const isOfTasks = configured.some((each) => each.name === tasksMember);
    const growth = isOfTasks ? ` (${growthRule(stored)})` : "";
    throw new UsageError(
      `Cannot resume ${name}: ${listed(configured)}; start with the same settings${growth} or choose another --out`,
    );
  }
  const { identity } = manifest;
  if (identity !== undefined && stored.identity !== undefined) {
    requireSameIdentity(name, { stored, manifest }, differences(stored.identity, identity));
  }
}

/**
 * Describes the rule for adding tasks. If the plan does not list its tasks, additional tasks would change the seeds of
 * the others.
 */
function growthRule(stored: RunManifest): string {
  return listsTasks(stored)
    ? "tasks may only be added after those of the run"
    : "only a run without epochs may get more tasks";
}

/** True if both manifests have the same configuration and identity. */
export function isSameRun(before: RunManifest, now: RunManifest): boolean {
  const configured = differences(before.configuration, now.configuration);
  const found = differences(before.identity ?? {}, now.identity ?? {});
  return configured.length === 0 && found.length === 0;
}

function requireSameIdentity(
  name: string,
  { stored, manifest }: { readonly stored: RunManifest; readonly manifest: RunManifest },
  differing: readonly Difference[],
): void {
  const isOneVersion = stored.turnwright === manifest.turnwright;
  const found = differing.filter(
    (each) => each.isNamedByBoth || (isOneVersion && !reportedByEngine.has(each.name)),
  );
  if (found.length === 0) return;
  const limit = canTakeLimit(stored, manifest)
    ? `, give --${contextMember} ${stored.identity?.[contextMember]}`
    : "";
  throw new UsageError(
    `Cannot resume ${name}: the identity of its episodes has changed: ${listed(found)}; ` +
      `restore what was there${limit} or choose another --out`,
  );
}

/**
 * True if the setting for the context limit can restore the earlier limit. It cannot if the engine's context is
 * shorter.
 */
function canTakeLimit({ identity: before }: RunManifest, now: RunManifest): boolean {
  const [was, is] = [Number(before?.[contextMember]), Number(now.identity?.[contextMember])];
  const isConfigured = now.configuration[contextMember] !== undefined;
  return is > was || (isConfigured && is < was);
}

/**
 * Returns the differences between two configurations. If one start was given the context limit and the other found it,
 * the found limits are compared as part of the identity instead.
 */
function configurationDifferences(
  stored: RunManifest,
  manifest: RunManifest,
): readonly Difference[] {
  const isFound = [stored, manifest].every(({ identity }) => identity?.[contextMember]);
  return differences(stored.configuration, manifest.configuration).filter(
    ({ name, isNamedByBoth }) =>
      name === tasksMember
        ? !continuesPlan(stored, manifest)
        : isNamedByBoth || name !== contextMember || !isFound,
  );
}

interface Difference {
  readonly name: string;
  /** The difference in words, such as `temperature was 1 and is 0.5`. */
  readonly text: string;
  /** True if both starts have the member. Another version of this package may have more or fewer members. */
  readonly isNamedByBoth: boolean;
}

function differences(
  before: Readonly<Record<string, unknown>>,
  now: Readonly<Record<string, unknown>>,
): readonly Difference[] {
  const [was, is] = [new Map(Object.entries(before)), new Map(Object.entries(now))];
  const keys = [...new Set([...was.keys(), ...is.keys()])];
  return keys
    .filter((key) => !isDeepStrictEqual(plain(was.get(key)), plain(is.get(key))))
    .map((key) => ({
      name: key,
      text: `${key} was ${JSON.stringify(was.get(key))} and is ${JSON.stringify(is.get(key))}`,
      isNamedByBoth: was.get(key) !== undefined && is.get(key) !== undefined,
    }));
}

function listed(found: readonly Difference[]): string {
  return found.map(({ text }) => text).join("; ");
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}
