import path from "node:path";
import { shorten } from "../../secrets/shorten.ts";

/** The form of an error that the Python side reports. JSON-able. */
export interface PythonErrorFacts {
  readonly type: string;
  readonly message: string;
  readonly file?: string;
  readonly line?: number;
  readonly traceback?: string;
  /** Turnwright's code of the failure, `refused` for an environment that cannot be played, or `overdue`. */
  readonly code?: string;
  /** The package that an import lacks. */
  readonly missing?: string;
}

/** Kinds of failures of a request: see `PythonFailure`. */
export type PythonFailureKind = "raised" | "overdue" | "died" | "too-long" | "protocol";

/**
 * The failure of a request to a Python process. `raised`: the code raised an error. `overdue`: it exceeded its time
 * limit. `died`: the process ended. `too-long`: the answer exceeds a line. `protocol`: the answer has another form.
 */
export class PythonFailure extends Error {
  override readonly name = "PythonFailure";
  readonly kind: PythonFailureKind;
  readonly facts: PythonErrorFacts | undefined;

  constructor(kind: PythonFailureKind, message: string, facts?: PythonErrorFacts) {
    super(message);
    this.kind = kind;
    this.facts = facts;
  }

  /** ` at FILE:LINE`, or an empty text. */
  get where(): string {
    return this.facts === undefined ? "" : placeOf(this.facts);
  }
}

/** Returns ` at FILE:LINE` for an error, or an empty text if its place is unknown. */
export function placeOf({ file, line }: Pick<PythonErrorFacts, "file" | "line">): string {
  if (file === undefined) return "";
  return ` at ${path.basename(file)}${line === undefined ? "" : `:${line}`}`;
}

/** Returns an error's type and message, in one line. Errors of Turnwright's own package have no type. */
export function describePythonError({ type, message, code }: PythonErrorFacts): string {
  const isOwn = code === "refused" || code?.includes("/") === true || type === "BadResult";
  if (isOwn) return message;
  return message === "" ? type : `${type}: ${shorten(message, 500)}`;
}
