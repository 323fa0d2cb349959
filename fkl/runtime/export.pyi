# Only C functions; see export.pxd.
