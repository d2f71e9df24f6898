// expect: E0600
!1.5
