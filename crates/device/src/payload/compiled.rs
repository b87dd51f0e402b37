//! Payloads whose drives this crate compiles.

/// Members of the implementation of `Payload` for `$payload`: drives of it are compiled here.
macro_rules! compiled_here {
    ($payload:ty) => {
        const IS_COMPILED: bool = true;

        #[inline]
        fn compiled<T: 'static>() -> Option<&'static T> {
            static CONVENTIONAL: $crate::DriveOps<$payload, $crate::Conventional<$payload>> =
                $crate::controller::drive_ops();
            static ZONED: $crate::DriveOps<$payload, $crate::Zoned<$payload>> =
                $crate::controller::drive_ops();
            let tables: [&'static dyn std::any::Any; 2] = [&CONVENTIONAL, &ZONED];
            tables.into_iter().find_map(|table| table.downcast_ref())
        }
    };
}
pub(super) use compiled_here;
