# Only C functions; see transfer.pxd.
