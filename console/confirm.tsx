import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/**
 * Asks the operator to confirm an action, in a modal `<dialog>`. The browser traps the focus, closes
 * it on Escape and restores the focus.
 */
export function Confirm(props: {
  title: string;
  /** On the button that confirms. */
  verb: string;
  /** It cannot be undone. */
  danger?: boolean;
  onClose: (confirmed: boolean) => void;
  children: ComponentChildren;
}) {
  const { title, verb, danger = false, onClose, children } = props;
  const [confirmed, setConfirmed] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // Closes on unmount. If it is closed already, this does nothing and keeps the current focus.
    return () => element?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: by key it closes with Escape
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={() => onClose(confirmed)}
      // A click on the backdrop has the dialog itself as its target.
      onClick={({ target }) => target === dialog.current && dialog.current?.close()}
    >
      <div class="dialog-body">
        <h2>{title}</h2>
        {children}
        <form method="dialog" class="actions end">
          <button type="submit">Cancel</button>
          <button
            type="submit"
            class={danger ? "main danger" : "main"}
            onClick={() => setConfirmed(true)}
          >
            {verb}
          </button>
        </form>
      </div>
    </dialog>
  );
}
