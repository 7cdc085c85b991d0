import { ownTask, taskKey, type OwnTask } from "../folder/task-record.ts";
import type { RecordedAttempt } from "../recording/read-recording.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import type { AttemptJob, OpenGroup } from "../schedule/open-group.ts";

type TaskOptions = Pick<StartRunOptions, "setup" | "redactor">;

const ownTasks = new WeakMap<OpenGroup, { readonly own: OwnTask | undefined }>();

/** Returns the record of a group's task. Call it before an attempt is played: environments may change the task. */
export function ownTaskOf(group: OpenGroup, { setup, redactor }: TaskOptions): OwnTask | undefined {
  let known = ownTasks.get(group);
  if (known === undefined) {
    const options = { environment: setup.environment, ...(redactor && { redactor }) };
    known = { own: ownTask(group.task, options) };
    ownTasks.set(group, known);
  }
  return known.own;
}

/** True if a recording is of this attempt, and not of an attempt with the same id in another run. */
export function isRecordingOf(
  { begin }: RecordedAttempt,
  { assignment, group }: AttemptJob,
  options: TaskOptions,
): boolean {
  const { samplingSeed, forkedFrom } = assignment;
  return (
    begin.groupId === group.groupId &&
    begin.groupIndex === group.groupIndex &&
    begin.sampleIndex === assignment.sampleIndex &&
    begin.split === group.task.split &&
    begin.taskIndex === group.task.index &&
    isOfTask(begin, group, options) &&
    begin.seed === assignment.seed &&
    begin.samplingSeed === samplingSeed &&
    begin.forkedFrom?.rolloutId === forkedFrom?.rolloutId &&
    begin.forkedFrom?.turnIndex === forkedFrom?.turnIndex
  );
}

/** True unless the recording names another task than the group's. */
function isOfTask(
  { ownTask: recorded }: RecordedAttempt["begin"],
  group: OpenGroup,
  options: TaskOptions,
): boolean {
  if (recorded === undefined) return true;
  return recorded.hash === (ownTaskOf(group, options)?.hash ?? taskKey(group.task));
}
