/** Waits for conditions on an object that reports its changes. */
export interface ConditionWatch {
  /** Resolves when the condition holds. Checks the condition now and after each change. */
  until(condition: () => boolean): Promise<void>;
  /** Reports a change. */
  notify(): void;
}

/** Creates a watch. */
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
