/** Waits for conditions on something that says when it changed. */
export interface ConditionWatch {
  /** Resolves when the condition holds; looked at now and at each change. */
  until(condition: () => boolean): Promise<void>;
  /** Says that something changed. */
  notify(): void;
}

/** Creates a watch without waiting callers. */
export function createConditionWatch(): ConditionWatch {
  const waiters = new Set<() => void>();
  return {
    until: (condition) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!condition()) return;
          waiters.delete(check);
          resolve();
        };
        waiters.add(check);
        check();
      }),
    notify() {
      for (const waiter of waiters) waiter();
    },
  };
}
